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

/// Records as they stand in a message, written straight from where they lay in the store.
struct WrittenRecords: Sendable {
    /// Those that the message names before the page.
    let replicas: [ReplicaID]
    private(set) var writer: VersionWriter
    private(set) var count = 0
    /// Of their keys and values.
    private(set) var bytes = 0

    init(after replicas: [ReplicaID]) {
        self.replicas = replicas
        writer = VersionWriter(after: replicas)
    }

    mutating func add(_ change: ChangeView) throws(StoreError) {
        try writer.putChange(change)
        count += 1
        bytes += change.keyCount + change.valueCount
    }

    mutating func add(_ record: Record) {
        writer.putRecord(record)
        count += 1
        bytes += record.key.count + (record.value?.count ?? 0)
    }

    fileprivate var records: [Record] {
        do throws(SyncError) {
            return try VersionReader.records(writer.bytes, count: count, after: replicas)
        } catch {
            preconditionFailure("a page cannot be read back: \(error.message)")
        }
    }
}
