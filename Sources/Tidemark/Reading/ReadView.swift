/// Everything that can be read at one moment: immutable, shared by all readers of that moment,
/// and replaced as a whole when a segment is sealed or compacted.
@safe
final class ReadView: @unchecked Sendable {
    // Unchecked: the bare references are to what the arrays hold.

    /// The active one first, then those being sealed, newest first.
    let memtables: [Memtable]
    /// Newest first. Of one key, all of a run is older than all of the one before it.
    let runs: [SegmentRun]
    let keyHash: KeyHash
    private let memtableReferences: UnsafeMutableBufferPointer<Unmanaged<Memtable>>
    private let runReferences: UnsafeMutableBufferPointer<Unmanaged<SegmentRun>>

    init(memtables: [Memtable], runs: [SegmentRun], keyHash: KeyHash) {
        self.keyHash = keyHash
        self.memtables = memtables
        self.runs = runs
        unsafe memtableReferences = .allocate(capacity: memtables.count)
        unsafe runReferences = .allocate(capacity: runs.count)
        for (index, memtable) in memtables.enumerated() {
            unsafe memtableReferences.initializeElement(at: index, to: .passUnretained(memtable))
        }
        for (index, run) in runs.enumerated() {
            unsafe runReferences.initializeElement(at: index, to: .passUnretained(run))
        }
    }

    /// The view that follows: what is not named stays.
    func with(memtables: [Memtable]? = nil, runs: [SegmentRun]? = nil) -> ReadView {
        ReadView(
            memtables: memtables ?? self.memtables, runs: runs ?? self.runs, keyHash: keyHash)
    }

    deinit {
        unsafe memtableReferences.deallocate()
        unsafe runReferences.deallocate()
    }

    /// Of all runs, newest run first.
    var segments: [SealedSegment] { runs.flatMap(\.segments) }

    /// Of all segments, each once, in the order of their numbers.
    var valueFiles: [ValueFile] {
        var files: [UInt64: ValueFile] = [:]
        for file in segments.flatMap(\.values.files) { files[file.number] = file }
        return files.values.sorted { $0.number < $1.number }
    }

    /// The one run that holds everything; nil if there is more than that.
    var onlyRun: SegmentRun? {
        runs.count == 1 && memtables.allSatisfy(\.isEmpty) ? runs[0] : nil
    }

    /// The newest version of a key, tombstones included. O(1) in each memtable and each run.
    func newest(
        of key: ByteView, in dataset: DatasetID, sequenceMax: UInt64
    ) throws(StoreError) -> FoundEntry? {
        try newest(
            of: key, in: dataset, hash: keyHash.of(key, in: dataset), sequenceMax: sequenceMax)
    }

    /// The same for whoever has the hash of the key.
    @inline(__always)
    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64, sequenceMax: UInt64
    ) throws(StoreError) -> FoundEntry? {
        for index in unsafe 0..<memtableReferences.count {
            let found = unsafe memtableReferences[index]._withUnsafeGuaranteedRef { memtable in
                memtable.newest(of: key, in: dataset, hash: hash, sequenceMax: sequenceMax)
                    .map { FoundEntry($0, memtable.tables) }
            }
            if let found { return found }
        }
        for index in unsafe 0..<runReferences.count {
            let found = try unsafe runReferences[index].withBorrowed {
                (run) throws(StoreError) in
                try run.newest(of: key, in: dataset, hash: hash)
            }
            if let found { return found }
        }
        return nil
    }

    /// Has the processor fetch what a search for a key looks at first, in each memtable and each
    /// run: who searches for many can say so some keys ahead, and need not wait for memory then.
    @inline(__always)
    func prefetch(_ key: ByteView, in dataset: DatasetID, hash: UInt64) {
        for index in unsafe 0..<memtableReferences.count {
            unsafe memtableReferences[index]._withUnsafeGuaranteedRef { $0.prefetch(hash: hash) }
        }
        for index in unsafe 0..<runReferences.count {
            unsafe runReferences[index]._withUnsafeGuaranteedRef {
                $0.prefetch(key, in: dataset, hash: hash)
            }
        }
    }

    /// The same for what it looks at second, in the memtables: what comes first must be there.
    @inline(__always)
    func prefetchNode(hash: UInt64) {
        for index in unsafe 0..<memtableReferences.count {
            unsafe memtableReferences[index]._withUnsafeGuaranteedRef {
                $0.prefetchNode(hash: hash)
            }
        }
    }

    /// The same for the entry that it finds. What comes before must be there.
    @inline(__always)
    func prefetchEntry(of key: ByteView, in dataset: DatasetID, hash: UInt64) {
        for index in unsafe 0..<memtableReferences.count {
            let isThere = unsafe memtableReferences[index]._withUnsafeGuaranteedRef {
                $0.prefetchEntry(hash: hash)
            }
            if isThere { return }
        }
        for index in unsafe 0..<runReferences.count {
            let isThere = unsafe runReferences[index]._withUnsafeGuaranteedRef {
                $0.prefetchEntry(of: key, in: dataset, hash: hash)
            }
            if isThere { return }
        }
    }

    /// Whether there is a version of a key in the memtables or in a run before that one. O(1) in
    /// each of them.
    func hasNewer(
        than run: Int, of key: ByteView, in dataset: DatasetID, sequenceMax: UInt64
    ) throws(StoreError) -> Bool {
        let hash = keyHash.of(key, in: dataset)
        for index in unsafe 0..<memtableReferences.count {
            let isFound = unsafe memtableReferences[index]._withUnsafeGuaranteedRef { memtable in
                memtable.newest(of: key, in: dataset, hash: hash, sequenceMax: sequenceMax) != nil
            }
            if isFound { return true }
        }
        for index in 0..<run {
            let found = try unsafe runReferences[index].withBorrowed {
                (newer) throws(StoreError) in
                try newer.newest(of: key, in: dataset, hash: hash)
            }
            guard let found else { continue }
            found.release()
            return true
        }
        return false
    }

    /// Hands out the newest version of a key, tombstones included, or nil. The entry is valid
    /// during the call.
    @inline(__always)
    func withNewest<Result>(
        of key: ByteView, in dataset: DatasetID, sequenceMax: UInt64,
        _ body: (Entry?, VersionTables?) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let found = try newest(of: key, in: dataset, sequenceMax: sequenceMax)
        defer { found?.release() }
        return try body(found?.entry, found?.tables)
    }
}
