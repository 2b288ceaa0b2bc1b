/// Makes a new store of what was saved: one sorted run, and a manifest that comes last.
final class SalvageWriter {
    private static let entriesPerTelling = 1_024

    private let salvage: Salvage
    private let destination: String
    private let storage: any Storage
    private let progress: SalvageProgress
    private var nextNumber: UInt64 = 1

    init(
        _ salvage: Salvage, to destination: String, storage: any Storage,
        progress: SalvageProgress = SalvageProgress(nil)
    ) {
        self.salvage = salvage
        self.destination = destination
        self.storage = storage
        self.progress = progress
    }

    func write() throws(StoreError) -> RepairReport {
        let lock = try takeDestination()
        defer { withExtendedLifetime(lock) {} }
        let states = SalvagedStates(salvage)
        let id = ReplicaID(high: storage.randomUInt64(), low: storage.randomUInt64())
        let identity = StoreIdentity(drawnFrom: storage)
        let own = ownIDs(states)
        let finished = states.finished(own: own, replica: id, lostMax: lostMax)
        let writer = SegmentRunWriter { [self] () throws(StoreError) in
            defer { nextNumber += 1 }
            return try SegmentWriter(
                number: nextNumber, path: "\(destination)/\(FileName.sealed(nextNumber))",
                identity: identity, options: StoreOptions(), storage: storage)
        }
        try add(finished, timeMax: states.timeMax, to: writer)
        try addEntries(states, id, to: writer)
        try writer.finish()
        try storage.syncDirectory(destination)

        var manifest = Manifest(replicaID: id, identity: identity)
        manifest.formerReplicaIDs = own
        manifest.nextNumber = nextNumber + 1
        manifest.nextDataset =
            (finished.map(\.recordsID) + Array(states.findings.keys))
            .filter { !Limits.systemDatasetNumbers.contains($0) }.reduce(0) { max($0, $1) } &+ 1
        let timeMax = finished.reduce(states.timeMax) { max($0, $1.lifecycle.time.rawValue) }
        // What is dated too far ahead moves no clock here, either.
        manifest.clock = max(salvage.manifest?.clock ?? 0, min(timeMax, latestBelieved.rawValue))
        manifest.expiresFrom = finished.reduce(.max) { min($0, $1.expiresFrom) }
        manifest.segments = writer.finished.map { made in
            var entry = made
            entry.run = writer.finished[0].number
            return entry
        }
        try manifest.write(in: destination, storage: storage)
        return RepairReport(salvage, states, finished, id)
    }

    private var latestBelieved: HybridTime {
        .latestBelieved(at: storage, aheadMax: StoreOptions().clockAheadMax)
    }

    private func takeDestination() throws(StoreError) -> any StorageLock {
        guard !destination.isEmpty else {
            throw StoreError(.invalidArgument, "the destination has no name; name a directory")
        }
        guard try storage.provideDirectory(destination).allSatisfy({ $0 == "LOCK" }) else {
            throw .notEmpty(destination)
        }
        return try storage.lock(destination)
    }

    /// Ids under which the damaged store wrote, as far as they are known.
    private func ownIDs(_ states: SalvagedStates) -> [ReplicaID] {
        var own: [ReplicaID] = []
        let all =
            (salvage.manifest.map { $0.formerReplicaIDs + [$0.replicaID] } ?? [])
            + states.renamed + (states.onlyWriter.map { [$0] } ?? [])
        for id in all where !own.contains(id) { own.append(id) }
        return own
    }

    /// An entry takes eight bytes at least; LZ4 makes nothing smaller than a 255th.
    private var lostMax: UInt64 {
        salvage.losses.reduce(0) { $0 + min($1.byteCount, 1 << 32) * 32 + 1 }
    }

    // MARK: - Records

    /// The store's own records come first. What log they say they are from only has to be less
    /// than the number of any log to come.
    /// - Parameter timeMax: the greatest time in anything that was found.
    private func add(
        _ states: [DatasetState], timeMax: UInt64, to writer: SegmentRunWriter
    ) throws(StoreError) {
        for state in states { state.isNumberNew = state.recordsID != 0 }
        try ChangedStates(states).write(to: writer, log: 1)
        var losses = SegmentLosses()
        for segment in salvage.segments { losses.formUnion(segment.historyLosses) }
        for state in states where state.recordsID != 0 {
            // What is missing is not known version by version: of the time before the repair
            // nothing can be told for sure.
            losses[state.recordsID].noteDropped(supersededAt: state.syncCount, time: timeMax)
        }
        try writer.note(losses)
    }

    /// All versions of all records, in their order, each once.
    private func addEntries(
        _ states: SalvagedStates, _ id: ReplicaID, to writer: SegmentRunWriter
    ) throws(StoreError) {
        let cursors = salvage.cursors
        let entryCount = states.findings.values.reduce(0) { $0 + $1.entryCount }
        var passed = 0
        var counters: [DatasetID: UInt64] = [:]
        var last: (dataset: DatasetID, key: [UInt8], syncCount: UInt64)?
        while let cursor = first(of: cursors), let entry = cursor.entry {
            defer { cursor.advance() }
            passed += 1
            if passed.isMultiple(of: Self.entriesPerTelling) {
                progress.tellWriting(passed, of: entryCount)
            }
            guard entry.dataset != 0, !states.retired.contains(entry.dataset) else { continue }
            let isSameKey =
                unsafe last?.dataset == entry.dataset
                && last!.key.withUnsafeBytes { unsafe ByteView($0).equals(entry.key) }
            // The same entry may lie in a log and in the segment that was made of it.
            if isSameKey, last?.syncCount == entry.syncCount { continue }
            var version = cursor.version(of: entry.stamp)
            if version == nil {
                // What was dropped here alone stays so: a number of its own would make it a
                // deletion that peers are told of.
                var counter: UInt64 = 0
                if !entry.stamp.isMark(of: entry.kind) {
                    counter = (counters[entry.dataset] ?? 0) + 1
                    counters[entry.dataset] = counter
                }
                // It yields to every version that is dated.
                version = Version(
                    dot: Dot(replica: id, counter: counter), vector: VersionVector(), time: .zero)
            }
            guard let version else { continue }
            let isWritten = try salvage.values.withValue(of: entry) {
                (value) throws(StoreError) -> Bool in
                guard let value else { return false }
                try writer.segment().add(
                    entry, isSuperseded: isSameKey, version: version, value: value)
                return true
            }
            guard isWritten else { continue }
            last = (entry.dataset, isSameKey ? last!.key : entry.key.array, entry.syncCount)
        }
    }

    private func first(of cursors: [any SalvageCursor]) -> (any SalvageCursor)? {
        var best: (any SalvageCursor)?
        for cursor in cursors {
            guard let entry = cursor.entry else { continue }
            if let known = best?.entry, known.position.compare(entry.position) <= 0 { continue }
            best = cursor
        }
        return best
    }
}
