/// The taking side of what replicas send to one that has nothing: makes segments of an offer's
/// blocks, one after the other, and at last a part of the store of all of them at once.
///
/// Until ``install(from:notes:)`` nothing of it can be seen: the segments are files that no
/// manifest names. Cut off, it may rest in the store and go on where it was, as long as the peer
/// still offers the same segments; when the store is opened again, with what was left of it
/// (`KeptPart`), unless it is of a peer that has no name.
///
/// Memory: what a ``SegmentWriter`` takes for one segment, and the blocks at hand.
///
/// Thread rule: one task at a time. While it rests the store's writer lock guards the reference.
package final class SegmentAdoption: @unchecked Sendable {
    // Unchecked: see the thread rule.

    /// A segment whose file is whole and durable.
    struct Finished {
        let number: UInt64
        let entries: AdoptedEntries
    }

    private struct Current {
        let part: SegmentOffer.Segment
        let writer: SegmentWriter
        let bounds: AdoptionBounds
        /// Beside the part, if it is to outlast the opening.
        let journal: PartJournal?
        /// The next block that is due.
        var next = 0
    }

    let engine: Engine
    let state: DatasetState
    /// Who offers; nil if nothing of it is to outlast the opening.
    fileprivate let peer: ReplicaID?
    package private(set) var offer: SegmentOffer
    private var finished: [SegmentOffer.Segment: Finished] = [:]
    private var current: Current?
    private let buffer = BlockBuffer()

    fileprivate init(
        _ offer: SegmentOffer, of state: DatasetState, in engine: Engine, from peer: ReplicaID?
    ) {
        self.offer = offer
        self.state = state
        self.engine = engine
        self.peer = peer
    }

    /// What is still to come, in the order in which ``add(_:of:)`` wants it: parts and the block
    /// of each to begin with.
    package var missing: [(part: SegmentOffer.Segment, first: Int)] {
        var parts: [(part: SegmentOffer.Segment, first: Int)] = []
        if let current { parts.append((current.part, current.next)) }
        for part in offer.runs.joined() where finished[part] == nil && part != current?.part {
            parts.append((part, 0))
        }
        return parts
    }

    /// Whether blocks have come before, up to one that is not among them.
    package func has(_ part: SegmentOffer.Segment, through next: Int) -> Bool {
        if finished[part] != nil { return true }
        return current.map { $0.part == part && $0.next >= next } ?? false
    }

    /// Goes on with what another offer has in common with the one before.
    fileprivate func goOn(with next: SegmentOffer) {
        let isSame = next.dataset == offer.dataset
        let offered = Set(next.runs.joined())
        if let current, !isSame || !offered.contains(current.part) {
            remove(current.writer.number)
            self.current = nil
        }
        for (part, made) in finished where !isSame || !offered.contains(part) {
            remove(made.number)
            finished[part] = nil
        }
        offer = next
    }

    // MARK: - Blocks

    /// Takes blocks that follow on those before. Returns how many entries came with them.
    ///
    /// - Throws: `invalidArgument` if they are not what was offered; then nothing is left but to
    ///   ``abandon()``. What writing throws.
    package func add(
        _ blocks: StoredBlocks, of part: SegmentOffer.Segment
    ) throws(StoreError) -> Int {
        if current == nil { try begin(part) }
        guard var current, current.part == part, blocks.next > current.next,
            blocks.next <= part.blockCount
        else { throw .refusedBlock("blocks came that were not asked for") }
        let countBefore = current.writer.entryCount
        try blocks.bytes.withBytes { (view) throws(StoreError) in
            try add(view, to: current)
        }
        current.next = blocks.next
        let count = current.writer.entryCount - countBefore
        if let journal = current.journal {
            try current.writer.output.flush()
            try journal.note(
                PartMark(next: UInt64(current.next), offset: current.writer.output.offset))
        }
        if current.next == part.blockCount { try finish(current) } else { self.current = current }
        return count
    }

    private func begin(_ part: SegmentOffer.Segment) throws(StoreError) {
        var content = VersionTables.Content()
        try part.tables.withBytes { (view) throws(StoreError) in
            do throws(Malformed) {
                content = try VersionTables.content(decoding: view)
            } catch {
                throw .refusedBlock(error.what)
            }
        }
        try engine.ownership?.check()
        let number = engine.withLock { held in held.fileNumbers.draw() }
        let identity = engine.identity
        var journal: PartJournal?
        if let peer {
            journal = try PartJournal(
                PartOrigin(part, of: offer, dataset: state.name, peer: peer), number: number,
                path: engine.filePath(FileName.origin(ofPart: number)), identity: identity,
                storage: engine.storage)
        }
        let name = peer == nil ? FileName.sealed(number) : FileName.part(number)
        let writer = try SegmentWriter(
            number: number, path: engine.filePath(name),
            identity: identity, options: engine.options, storage: engine.storage,
            adopting: offer.dataset,
            with: content)
        let bounds = AdoptionBounds(
            dataset: offer.dataset, segment: UInt32(truncatingIfNeeded: part.number),
            syncCountMax: offer.knowledge.syncCount.rawValue,
            // What is further ahead must not get in without being looked at record by record.
            timeMax: engine.latestBelieved.rawValue)
        current = Current(part: part, writer: writer, bounds: bounds, journal: journal)
    }

    private func add(_ bytes: ByteView, to current: Current) throws(StoreError) {
        var offset = 0
        repeat {
            let rest = bytes.count - offset
            guard rest > BlockHeader.byteCount else {
                throw .refusedBlock("a block is cut short")
            }
            let header = unsafe BlockHeader(at: bytes.base + offset)
            let count = BlockHeader.byteCount + Int(header.storedCount)
            guard count <= rest else { throw .refusedBlock("a block is cut short") }
            try current.writer.adopt(
                unsafe ByteView(base: bytes.base + offset, count: count), within: current.bounds,
                buffer)
            // So that no more memory is taken for them than was agreed to.
            guard current.writer.entryCount <= current.part.entryCount else {
                throw .refusedBlock("there are more entries than were offered")
            }
            offset += count
        } while offset < bytes.count
    }

    private func finish(_ current: Current) throws(StoreError) {
        guard let entries = unsafe current.writer.adopted,
            entries.entryCount == current.part.entryCount
        else { throw .refusedBlock("there are fewer entries than were offered") }
        // Whatever becomes of the single segments, the dataset's losses go with each.
        var losses = SegmentLosses()
        losses[offer.dataset] = offer.loss
        current.writer.note(losses)
        _ = try current.writer.finish()
        finished[current.part] = Finished(number: current.writer.number, entries: entries)
        self.current = nil
    }

    // MARK: - The end

    /// Makes all of it part of the store, durably, with a checkpoint that says so of the peer.
    /// Returns the number of records, or nil if it came to nothing: something was written to the
    /// dataset meanwhile. Then nothing of it is left.
    ///
    /// - Parameter notes: records of the store's own datasets that stand or fall with it.
    /// - Throws: `invalidArgument` if the segments do not fit together; what writing throws.
    package func install(
        from peer: ReplicaID, notes: [SystemNote] = []
    ) throws(StoreError) -> Int? {
        guard missing.isEmpty else { throw .refusedBlock("a part of it has not come") }
        var runs: [[Finished]] = []
        for run in offer.runs { runs.append(run.compactMap { finished[$0] }) }
        try checkOrder(of: runs)
        let all = runs.joined().map(\.entries)
        var adopted = AdoptedState(
            records: offer.dataset, isVisible: true, lifecycle: offer.knowledge.lifecycle)
        adopted.vector = offer.knowledge.vector
        adopted.outstanding = offer.outstanding
        adopted.syncCount = offer.knowledge.syncCount.rawValue
        adopted.expiredThrough = offer.expiredThrough
        adopted.wipedTime = offer.wipedTime
        adopted.expiresFrom = all.reduce(.max) { min($0, $1.expiresFrom) }
        adopted.timeMax = all.reduce(0) { max($0, $1.timeMax) }
        if self.peer != nil {
            for made in finished.values {
                try engine.storage.rename(
                    engine.filePath(FileName.part(made.number)),
                    to: engine.filePath(FileName.sealed(made.number)))
                engine.removePart(made.number)
            }
        }
        // Should it fail now, the manifest may name the files or not: then they are not removed
        // here, and opening knows which is true.
        let files = finished
        finished = [:]
        let isInstalled = try engine.install(
            runs.map { $0.map(\.number) }, as: adopted, in: state, offer: offer, from: peer,
            notes: notes)
        guard isInstalled else {
            finished = files
            abandon()
            return nil
        }
        return all.reduce(0) { $0 + $1.keyCount }
    }

    /// Of a run each segment must stand behind the one before it. And runs that have counts in
    /// common might have the same entry twice, which no store has.
    private func checkOrder(of runs: [[Finished]]) throws(StoreError) {
        var countMin = UInt64.max
        for run in runs {
            for (segment, next) in zip(run, run.dropFirst()) {
                guard segment.entries.precedes(next.entries) else {
                    throw .refusedBlock("segments are out of order")
                }
            }
            let counts = run.map(\.entries.syncCounts)
            guard let lowest = counts.map(\.lowerBound).min(),
                let highest = counts.map(\.upperBound).max(), highest < countMin
            else { throw .refusedBlock("runs overlap in their counts") }
            countMin = lowest
        }
    }

    /// Leaves it to the next exchange to go on. Of several that rest the last one counts.
    package func rest() {
        let other = engine.withLock { held in
            defer { held.restingAdoption = held.isClosed ? nil : self }
            return held.restingAdoption
        }
        if other !== self { other?.abandon() }
    }

    /// Removes what was made of it. What cannot be removed now is removed at the next opening.
    package func abandon() {
        if let current { remove(current.writer.number) }
        for made in finished.values { remove(made.number) }
        (current, finished) = (nil, [:])
    }

    private func remove(_ number: UInt64) {
        try? engine.storage.remove(engine.filePath(FileName.sealed(number)))
        if peer != nil { engine.removePart(number) }
    }

    // MARK: - After another opening

    /// Goes on with what an earlier opening has left, as far as it is whole and still offered. What
    /// counts is copied, and the rest removed.
    fileprivate func goOn(with kept: [KeptPart]) throws(StoreError) {
        // Of those that are not complete only one can be gone on with.
        let ordered = kept.sorted { left, right in
            if left.isComplete != right.isComplete { return left.isComplete }
            return left.marks.count > right.marks.count
        }
        for left in ordered {
            var isDone = true
            defer { if isDone { engine.removePart(left.number) } }
            guard current == nil, let peer,
                let part = offer.runs.joined().first(where: { part in
                    left.origin
                        == PartOrigin(part, of: offer, dataset: state.name, peer: peer)
                }), finished[part] == nil
            else { continue }
            do throws(StoreError) {
                try copy(left, of: part)
            } catch {
                // What could not be read, or copied, is still whole: the next attempt has it again.
                isDone = !error.isOfEnvironment
                if !isDone { engine.withLock { held in held.keptParts.append(left) } }
                throw error
            }
        }
    }

    /// Adds what is left of a part, range by range, up to the first that is not whole.
    private func copy(_ left: KeptPart, of part: SegmentOffer.Segment) throws(StoreError) {
        let path = engine.filePath(FileName.part(left.number))
        let opened = try unlessDamaged { () throws(StoreError) in
            let file = try engine.storage.openFile(path, .read)
            return (file: file, size: try file.size())
        }
        guard let (file, size) = opened else { return }
        var offset = UInt64(FileHeader.byteCount)
        for mark in left.marks {
            guard mark.offset <= size,
                let bytes = try left.blocks(in: offset..<mark.offset, of: file)
            else { return }
            do throws(StoreError) {
                _ = try add(StoredBlocks(bytes: bytes, next: Int(mark.next)), of: part)
            } catch {
                guard error.code == .invalidArgument else { throw error }
                // They are whole and not what they must be: all of the part comes anew.
                if let current { remove(current.writer.number) }
                current = nil
                return
            }
            offset = mark.offset
        }
    }
}

extension Dataset {
    /// Begins to take over what a peer offers, or goes on with it after an interruption. nil if
    /// that cannot be: the dataset does not exist or has ever had a record, its number in the
    /// offer has been given to another one, or the offer is not what it may be.
    ///
    /// - Parameter peer: who offers. Then what has come outlasts the opening of the store, for the
    ///   same peer and dataset; nil: it does not.
    package func beginAdoption(
        of offer: SegmentOffer, from peer: ReplicaID? = nil
    ) throws(StoreError) -> SegmentAdoption? {
        guard offer.isPlausible(entriesMax: engine.options.segmentEntriesMax) else { return nil }
        let resting = try engine.withLock { (held) throws(StoreError) in
            try held.checkWritable()
            let resting = held.restingAdoption
            if resting?.state === state { held.restingAdoption = nil }
            return (
                adoption: resting?.state === state ? resting : nil,
                isPossible: held.canAdopt(offer, into: state),
                kept: held.takeKeptParts(of: state.name)
            )
        }
        guard resting.isPossible else {
            resting.adoption?.abandon()
            for part in resting.kept { engine.removePart(part.number) }
            return nil
        }
        guard let adoption = resting.adoption else {
            let adoption = SegmentAdoption(offer, of: state, in: engine, from: peer)
            do throws(StoreError) {
                try adoption.goOn(with: resting.kept)
            } catch {
                adoption.abandon()
                throw error
            }
            return adoption
        }
        for part in resting.kept { engine.removePart(part.number) }
        adoption.goOn(with: offer)
        return adoption
    }

    /// Takes up what rests of a taking over from a peer; nil if nothing does. It is at rest no
    /// more, until the caller lets it.
    package func resumeAdoption(from peer: ReplicaID) -> SegmentAdoption? {
        engine.withLock { held in
            guard let resting = held.restingAdoption, resting.state === state,
                resting.peer == peer
            else { return nil }
            held.restingAdoption = nil
            return resting
        }
    }

    /// Whether there is nothing of the dataset here and never was. If there is, what rests of a
    /// taking over is of no use any more and goes.
    package func canBeAdopted() throws(StoreError) -> Bool {
        let isPossible = try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.neverHadRecords
        }
        if !isPossible { abandonAdoption() }
        return isPossible
    }

    /// Gives up what rests of a taking over, or was left by an earlier opening.
    package func abandonAdoption() {
        let (resting, kept) = engine.withLock { (held) -> (SegmentAdoption?, [KeptPart]) in
            let kept = held.takeKeptParts(of: state.name)
            guard let resting = held.restingAdoption, resting.state === state else {
                return (nil, kept)
            }
            held.restingAdoption = nil
            return (resting, kept)
        }
        resting?.abandon()
        for part in kept { engine.removePart(part.number) }
    }
}

extension SegmentOffer {
    /// So many counts are left for writes of our own, however far the peer says it has come.
    private static let syncCountMax = Limits.countMax / 2

    /// - Parameter entriesMax: of a segment, so that the memory for making it is bounded.
    fileprivate func isPlausible(entriesMax: Int) -> Bool {
        let parts = Array(runs.joined())
        guard !parts.isEmpty, parts.count <= Limits.offeredSegmentsMax,
            runs.allSatisfy({ !$0.isEmpty }),
            Set(parts.map(\.number)).count == parts.count
        else { return false }
        for part in parts {
            guard part.blockCount > 0, part.blockCount < EntryPlace.blockCountMax - 1,
                part.entryCount > 0, part.entryCount <= UInt64(entriesMax)
            else { return false }
        }
        let syncCount = knowledge.syncCount.rawValue
        guard syncCount > 0, syncCount <= Self.syncCountMax, expiredThrough <= syncCount,
            collectedThrough <= syncCount, wholeFrom <= syncCount
        else { return false }
        let timeMax = UInt64(Int64.max)
        let lifecycle = knowledge.lifecycle
        guard wipedTime < timeMax, lifecycle.time.rawValue < timeMax, !lifecycle.isDeleted,
            knowledge.forgotten.isStorable
        else { return false }
        for vector in [knowledge.vector, outstanding, lifecycle.wiped] {
            guard vector.dots.allSatisfy({ $0.counter <= Limits.countMax }) else { return false }
        }
        return true
    }
}

extension DatasetState {
    /// Whether no entry of it was ever written here.
    var neverHadRecords: Bool {
        syncCount == 0 && vector.isEmpty && outstanding.isEmpty
    }
}
