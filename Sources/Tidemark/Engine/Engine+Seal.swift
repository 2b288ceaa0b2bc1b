internal import Synchronization

/// A full log on its way to a sealed segment.
struct SealJob {
    let memtable: Memtable
    /// The state of each dataset that changed in the log, as of the log's end.
    let states: [(name: String, bytes: [UInt8])]
    /// The store's own state as of the log's end, for the manifest.
    let replicaID: ReplicaID
    let formerReplicaIDs: [ReplicaID]
    let clock: HybridTime
    let nextDataset: DatasetID
    /// The log that comes after: the oldest one once this is sealed.
    let nextLog: UInt64
}

extension Engine {
    /// Under `monitor`, at the end of a log.
    func sealJob(for memtable: Memtable, nextLog: UInt64) -> SealJob {
        let names = touched.sorted()
        touched.removeAll(keepingCapacity: true)
        return SealJob(
            memtable: memtable, states: names.map { ($0, states[$0]?.encoded() ?? []) },
            replicaID: replicaID, formerReplicaIDs: manifest.formerReplicaIDs,
            clock: clock.last, nextDataset: nextDataset, nextLog: nextLog)
    }

    /// Begins a log ahead of need once the active one is a quarter full.
    func prepareNextLogIfDue() {
        guard preparedLog == nil, !isPreparing, let log = active?.log,
            log.appended > log.capacity / 4
        else { return }
        isPreparing = true
        monitor.broadcast()
    }

    /// The body of the sealing thread: seals what waits, prepares what will be needed.
    func runSealing() {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if failure == nil, let job = sealQueue.first {
                monitor.unlock()
                let result = Result { () throws(StoreError) in try self.seal(job) }
                monitor.lock()
                if case .failure(let error) = result { stopWriting(error) }
                monitor.broadcast()
            } else if isClosed {
                return
            } else if failure == nil, isPreparing {
                prepareLog()
            } else {
                monitor.wait()
            }
        }
    }

    /// Under `monitor`, which it gives up while the file is written.
    private func prepareLog() {
        let number = takeNumber()
        let result: Result<LogSegment, StoreError>
        do {
            monitor.unlock()
            defer { monitor.lock() }
            result = Result { () throws(StoreError) in
                try self.makeLog(
                    number: number, capacity: self.options.segmentBytes, isPrepared: true)
            }
        }
        isPreparing = false
        switch result {
        case .success(let log): preparedLog = log
        // Nothing is lost yet: the commit that needs the room will meet the same failure.
        case .failure(let error): stopWriting(error)
        }
        monitor.broadcast()
    }

    /// Writes the memtable as a sealed segment, makes it part of the store and removes its log.
    private func seal(_ job: SealJob) throws(StoreError) {
        let number = monitor.withLock { takeNumber() }
        let writer = try SegmentWriter(
            number: number, path: filePath(FileName.sealed(number)), tag: manifest.tag,
            compression: options.compression, storage: storage)
        try addStates(of: job, to: writer)
        let older = currentView.segments
        var merge = SegmentMerge(
            sources: [.memtable(MemtableCursor(job.memtable))], reachesOldest: older.isEmpty,
            retention: { self.retention(of: $0) }, isCancelled: { false })
        _ = try merge.write(to: writer)
        let size = try writer.finish()
        try storage.syncDirectory(path)
        let segment = try SealedSegment(
            number: number, path: filePath(FileName.sealed(number)), tag: manifest.tag,
            storage: storage,
            cache: cache)
        try install(segment, size: size, sealing: job)
        try storage.remove(job.memtable.log.path)
    }

    /// The store's own records come first in the order of entries.
    private func addStates(of job: SealJob, to writer: SegmentWriter) throws(StoreError) {
        let tables = VersionTables.placeholder
        for (name, bytes) in job.states {
            try Array(name.utf8).withBytes { (key) throws(StoreError) in
                try bytes.withBytes { (value) throws(StoreError) in
                    try writer.add(
                        Entry(
                            dataset: 0, kind: .put, key: key, value: value,
                            syncCount: job.memtable.log.number, sequence: 0, replica: 0,
                            vector: 0, author: 0, counter: 0, time: 0),
                        from: tables)
                }
            }
        }
    }

    private func install(
        _ segment: SealedSegment, size: UInt64, sealing job: SealJob
    ) throws(StoreError) {
        try updateManifest { manifest in
            manifest.segments.insert(
                Manifest.Segment(number: segment.number, fileSize: size), at: 0)
            manifest.replicaID = job.replicaID
            manifest.oldestLog = job.nextLog
            manifest.clock = max(manifest.clock, job.clock.rawValue)
            manifest.nextDataset = max(manifest.nextDataset, job.nextDataset)
        }
        monitor.withLock {
            view.withLock { view in
                view = ReadView(
                    memtables: view.memtables.filter { $0 !== job.memtable },
                    segments: [segment] + view.segments)
            }
            sealQueue.removeFirst()
            unsyncedLogs.removeAll { $0 === job.memtable.log }
            isCompactionWanted = true
            monitor.broadcast()
        }
    }

    /// Changes the manifest on disk, then in memory. Sealing and compaction do so in turn.
    func updateManifest(_ change: (inout Manifest) -> Void) throws(StoreError) {
        manifestLock.lock()
        defer { manifestLock.unlock() }
        var changed = monitor.withLock {
            var copy = manifest
            copy.nextNumber = max(copy.nextNumber, nextNumber)
            return copy
        }
        change(&changed)
        try changed.write(in: path, storage: storage)
        monitor.withLock { manifest = changed }
    }

    /// What of a dataset is still needed. Takes `monitor`.
    func retention(of dataset: DatasetID) -> Retention {
        monitor.withLock {
            let state = statesByID[dataset]
            let own = ownIDs
            let isSolitary =
                state.map { state in
                    state.peers.isEmpty && state.vector.dots.allSatisfy { own.contains($0.replica) }
                        && state.outstanding.isEmpty
                } ?? false
            return Retention(
                isLive: state?.recordsID == dataset || undurableIDs.contains(dataset),
                historyVersions: options.historyVersions,
                dirtiness: state?.dirtiness(ownIDs: own)
                    ?? Dirtiness(ownIDs: own, acknowledged: VersionVector()),
                isSolitary: isSolitary)
        }
    }
}
