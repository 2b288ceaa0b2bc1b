import Tidemark

/// A run of changes in the sender's order of change.
///
/// Its records are in one of three forms, because to make a ``Record`` of each costs more than
/// all else: as they lie in a message that arrived, as they were written for one that is to leave,
/// or as records.
struct RecordPage: Sendable {
    private enum Content: Sendable {
        case records([Record])
        case arrived(MergePage)
        case written(WrittenRecords)
    }

    private var content: Content
    /// Everything up to here is in this page or an earlier one, or known to the receiver.
    var through: SyncCount
    /// Whether nothing came after `through` at the moment of reading.
    var isLast: Bool
    /// Of the moment of reading.
    var knowledge: PeerKnowledge
    /// All that was seen then, if the vector of the knowledge leaves out some of it because that is
    /// held. It does not travel with the page.
    var seen: VersionVector?
    /// Whether there may be records in it that are held because of their date, which the sync count
    /// of the knowledge says nothing of.
    var mayHaveHeld = false
    /// What the sender had seen at the moment of reading, without what it holds, where the page is
    /// to claim nothing of it: see `SharedMerges` in the store. It does not travel with the page.
    var told: VersionVector?

    init(records: [Record], through: SyncCount, isLast: Bool, knowledge: PeerKnowledge) {
        content = .records(records)
        self.through = through
        self.isLast = isLast
        self.knowledge = knowledge
    }

    init(_ arrived: MergePage, through: SyncCount, isLast: Bool, knowledge: PeerKnowledge) {
        content = .arrived(arrived)
        self.through = through
        self.isLast = isLast
        self.knowledge = knowledge
    }

    init(_ written: WrittenRecords, _ run: ChangeRun) {
        content = .written(written)
        through = run.through
        isLast = run.isLast
        knowledge = PeerKnowledge(run.knowledge)
    }

    /// O(1).
    var recordCount: Int {
        switch content {
        case .records(let records): records.count
        case .arrived(let page): page.items.count
        case .written(let written): written.count
        }
    }

    /// As records of their own. O(bytes), unless the page was made of records: to be asked for
    /// once.
    var records: [Record] {
        get {
            switch content {
            case .records(let records): return records
            case .arrived(let page): return page.items.indices.map { page.record(at: $0) }
            case .written(let written): return written.records
            }
        }
        set { content = .records(newValue) }
    }

    /// Takes out these versions of their keys.
    mutating func leaveOut(_ versions: [[UInt8]: Dot]) {
        guard !versions.isEmpty else { return }
        records = records.filter { versions[$0.key] != $0.version.dot }
    }

    /// Which writes there are. As for ``records``.
    var writes: [(key: [UInt8], write: Dot)] {
        records.map { (key: $0.key, write: $0.version.dot) }
    }

    /// The records as they lie in the message they came with; nil if they did not come with one.
    var arrived: MergePage? {
        guard case .arrived(let page) = content else { return nil }
        return page
    }

    /// The records as they were written for a message.
    var written: WrittenRecords? {
        guard case .written(let written) = content else { return nil }
        return written
    }
}

extension RecordPage: Hashable {
    static func == (left: RecordPage, right: RecordPage) -> Bool {
        left.through == right.through && left.isLast == right.isLast
            && left.knowledge == right.knowledge && left.records == right.records
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(through)
        hasher.combine(recordCount)
        hasher.combine(knowledge)
    }
}

/// What a page may hold.
struct PageBounds {
    /// At least 1.
    let records: Int
    /// Of keys and values; a single record may exceed it.
    let bytes: Int

    /// Whether a record of that size has room behind so many others.
    func haveRoom(for size: Int, behind count: Int, _ bytes: Int) -> Bool {
        count < max(1, records) && (count == 0 || bytes + size <= self.bytes)
    }
}

/// Records as they stand in a message, written straight from where they lay in the store.
struct WrittenRecords: Sendable {
    /// Those that the message names before the page.
    let replicas: [ReplicaID]
    fileprivate(set) var writer: VersionWriter
    fileprivate(set) var count = 0
    /// Of their keys and values.
    fileprivate var bytes = 0
    /// Their keys, if anything is held that may follow on them.
    fileprivate var keys: Set<[UInt8]> = []

    init(after replicas: [ReplicaID]) {
        self.replicas = replicas
        writer = VersionWriter(after: replicas)
    }

    mutating func add(_ change: ChangeView) throws(StoreError) {
        try writer.putChange(change)
        count += 1
    }

    fileprivate var records: [Record] {
        do throws(SyncError) {
            return try VersionReader.records(writer.bytes, count: count, after: replicas)
        } catch {
            preconditionFailure("a page cannot be read back: \(error.message)")
        }
    }
}

extension Dataset {
    /// The newest version of each key changed after `since`, written for a message.
    ///
    /// - Parameters:
    ///   - recordsMax: records in the page at most, at least 1.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    ///   - replicas: those that the message names before the page.
    ///   - withheld: keys of held writes that are left out, so that the vector does not claim them.
    ///   - memory: of who reads page after page.
    ///   - isWanted: leaves out other changes; they count as told.
    func writtenPage(
        since: SyncCount, recordsMax: Int, bytesMax: Int, excluding: VersionVector,
        after replicas: [ReplicaID], withholding withheld: Set<[UInt8]> = [],
        remembering memory: ChangeMemory? = nil,
        where isWanted: (ChangeView) throws(StoreError) -> Bool = { _ in true }
    ) throws(StoreError) -> RecordPage {
        var written = WrittenRecords(after: replicas)
        let bounds = pageBounds(records: recordsMax, bytes: bytesMax)
        // In this order: what the vector claimed then is held now, or is among the changes.
        let vectorBefore = try vector
        let held = try QuarantineBook(self).names()
        let run = try withChanges(
            since: since, excluding: excluding, remembering: memory
        ) { (change) throws(StoreError) in
            guard try isWanted(change) else { return true }
            let size = change.keyCount + change.valueCount
            guard bounds.haveRoom(for: size, behind: written.count, written.bytes) else {
                return false
            }
            try written.add(change)
            written.bytes += size
            if !held.isEmpty {
                var key: [UInt8] = []
                change.appendKey(to: &key)
                written.keys.insert(key)
            }
            return true
        }
        let book = try QuarantineBook(self)
        let isHolding = try !book.isEmpty()
        guard run.isLast, isHolding || !held.isEmpty else { return RecordPage(written, run) }
        let left = try add(held, of: book, to: &written, bounds, excluding: excluding, withheld)
        var page = RecordPage(written, run)
        page.mayHaveHeld = true
        page.knowledge.vector = vectorBefore
        if !left.isEmpty {
            // What did not fit comes with a page of its own: the next one if there is one, else
            // that of the next exchange, and until then the vector does not claim it.
            if run.through > since {
                page.isLast = false
            } else {
                page.knowledge.vector = vectorBefore.before(left)
                page.seen = vectorBefore
            }
        }
        return page
    }

    /// Adds what is held of the dataset and not known to the receiver: behind all changes, since it
    /// has no place in their order. A page has each key once.
    ///
    /// - Parameter held: what was held before the changes were read.
    /// - Returns: what has no room, or is held no more, and may be behind the changes by now.
    private func add(
        _ held: [HeldName], of book: QuarantineBook, to written: inout WrittenRecords,
        _ bounds: PageBounds, excluding: VersionVector, _ withheld: Set<[UInt8]>
    ) throws(StoreError) -> [Dot] {
        var left: [Dot] = []
        for name in held {
            let dot = name.dot
            guard let record = try book.record(name) else {
                left.append(dot)
                continue
            }
            if excluding.contains(dot), excluding.covers(record.version.vector) { continue }
            // What was overwritten goes with what overwrote it.
            let local = try storedRecord(for: record.key)
            if local?.hasOverwritten(record) ?? false { continue }
            let size = record.key.count + (record.value?.count ?? 0)
            guard !withheld.contains(record.key), !written.keys.contains(record.key),
                bounds.haveRoom(for: size, behind: written.count, written.bytes)
            else {
                left.append(dot)
                continue
            }
            written.writer.putRecord(record)
            written.count += 1
            written.bytes += size
            written.keys.insert(record.key)
        }
        return left
    }

    /// The newest versions of some keys, in their order, written for a message.
    ///
    /// - Parameters:
    ///   - changedThrough: leaves out records that have changed after that count.
    ///   - through: of the page, which is never the last one.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - replicas: those that the message names before the page.
    /// - Returns: with the page, how many of the keys it answers for, from the first on.
    func writtenPage(
        of keys: [[UInt8]], changedThrough: SyncCount = SyncCount(rawValue: .max),
        through: SyncCount = .zero, bytesMax: Int, after replicas: [ReplicaID]
    ) throws(StoreError) -> (page: RecordPage, lookedAt: Int) {
        var written = WrittenRecords(after: replicas)
        var bytes = 0
        let (lookedAt, run) = try withRecords(of: keys) { (record) throws(StoreError) in
            guard record.syncCount <= changedThrough else { return true }
            let size = record.keyCount + record.valueCount
            guard written.count == 0 || bytes + size <= bytesMax else { return false }
            try written.writer.putChange(record)
            written.count += 1
            bytes += size
            return true
        }
        var page = RecordPage(written, run)
        page.through = through
        return (page, lookedAt)
    }

    /// The newest version of each key changed after `since`, in the order of the keys, written for
    /// a message.
    ///
    /// - Parameters:
    ///   - start: the first key; nil for the first there is.
    ///   - recordsMax: records in the page at most, at least 1.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    ///   - scannedMax: records that are looked at, and bytes of them, told or not: at least 1.
    /// - Returns: with the page, which is never the last one, the first key that it says nothing
    ///   of; nil if there is none.
    func writtenPage(
        from start: [UInt8]?, since: SyncCount, recordsMax: Int, bytesMax: Int,
        excluding: VersionVector, scannedMax: (records: Int, bytes: Int)
    ) throws(StoreError) -> (page: RecordPage, next: [UInt8]?) {
        var written = WrittenRecords(after: [])
        var bytes = 0
        let (next, run) = try withRecords(
            from: start, since: since, excluding: excluding,
            countMax: scannedMax.records, scannedBytesMax: scannedMax.bytes
        ) { (record) throws(StoreError) in
            guard written.count < max(1, recordsMax) else { return false }
            let size = record.keyCount + record.valueCount
            guard written.count == 0 || bytes + size <= bytesMax else { return false }
            try written.add(record)
            bytes += size
            return true
        }
        return (RecordPage(written, run), next)
    }
}
