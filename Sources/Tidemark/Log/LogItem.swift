/// One item of a block of operations, as it is decoded. Keys and values are borrowed from the log.
///
///     0               nothing more: up to seven zeros fill the block to a multiple of 8
///     1   replica:    16 bytes id; gets the next number of this log
///     2   vector:     varint count, then (varint replica number, varint counter) each; likewise
///     3   author:     varint length, UTF-8; likewise
///     4   origin:     varint replica, vector and author number of this log; likewise
///     8   dataset:    counted name, varint id, byte 1 if visible, lifecycle
///     9   checkpoint: counted name, peer id, varint pulled, varint pushed, vector
///     10  seen:       counted name, vector
///     11  renamed:    16 bytes: the store's new ReplicaID
///     12  adopted:    counted name, see ``AdoptedState``
///     13  disowned:   counted name, 16 bytes id of a replica, byte 1 if all of it was compared
///     14  forgotten:  counted name, vector and 8 bytes time of deletions that may be forgotten
///     15  retired:    counted name, 16 bytes id of a peer that is waited for no longer
///     16  entry:      see ``EntryLayout``
///     17  dated:      nothing; the date of the next entry is not from this store's clock
///     18  copied:     16 bytes: the store's new ReplicaID, since its files are copies
@safe
enum LogItem {
    case replica(ReplicaID)
    case vector([(replica: UInt32, counter: UInt64)])
    case author(String)
    case origin(Origin)
    case dataset(id: DatasetID, isVisible: Bool, name: String, DatasetLifecycle)
    case checkpoint(name: String, peer: ReplicaID, PeerCheckpoint)
    case seen(name: String, VersionVector)
    case renamed(ReplicaID)
    case adopted(name: String, AdoptedState)
    case disowned(name: String, ReplicaID, isSettled: Bool)
    case forgotten(name: String, ForgottenDeletions)
    case retired(name: String, ReplicaID)
    case entry(Entry, at: UnsafeRawPointer)
    case dated
    case copied(ReplicaID)

    enum Code: UInt8 {
        case replica = 1
        case vector = 2
        case author = 3
        case origin = 4
        case dataset = 8
        case checkpoint = 9
        case seen = 10
        case renamed = 11
        case adopted = 12
        case disowned = 13
        case forgotten = 14
        case retired = 15
        case entry = 16
        case dated = 17
        case copied = 18
    }
}

/// Takes a block of operations apart, item by item.
@safe
struct LogItemReader {
    private let payload: ByteView
    private let timeBase: UnsafeRawPointer
    private var reader: ByteReader

    /// - Parameter log: holds the payload.
    init(_ payload: ByteView, of log: LogSegment) {
        unsafe self.init(payload, timeBase: log.timeBase)
    }

    /// - Parameter timeBase: where the log's header says when it was made.
    init(_ payload: ByteView, timeBase: UnsafeRawPointer) {
        self.payload = payload
        unsafe self.timeBase = unsafe timeBase
        reader = ByteReader(payload)
    }

    private mutating func numberedVector() throws(Malformed) -> [(replica: UInt32, counter: UInt64)]
    {
        var entries: [(replica: UInt32, counter: UInt64)] = []
        for _ in 0..<(try reader.count(eachAtLeast: 2)) {
            entries.append((try reader.varint32(), try reader.varint()))
        }
        return entries
    }

    /// - Parameter originCount: origins that the log has defined so far.
    mutating func next(originCount: Int) throws(Malformed) -> LogItem? {
        guard !reader.isAtEnd else { return nil }
        let first = try reader.byte()
        if first == 0 {
            let rest = try reader.view(reader.remaining)
            guard rest.count < LogSegment.alignment - 1, rest.array.allSatisfy({ $0 == 0 }) else {
                throw Malformed("a block of operations goes on behind its end")
            }
            return nil
        }
        guard let code = LogItem.Code(rawValue: first) else {
            throw Malformed("an operation has an unknown code")
        }
        switch code {
        case .replica:
            return .replica(try reader.replicaID())
        case .vector:
            return .vector(try numberedVector())
        case .author:
            return .author(try reader.countedText(max: Limits.authorBytesMax))
        case .dataset:
            let name = try reader.datasetName()
            let id = try reader.datasetID()
            guard DatasetName.fits(name, number: id) else {
                throw Malformed("a dataset has a number of another sort")
            }
            let isVisible = try reader.byte() == 1
            return .dataset(
                id: id, isVisible: isVisible, name: name, try reader.lifecycle())
        case .checkpoint:
            let name = try reader.datasetName()
            let peer = try reader.replicaID()
            return .checkpoint(name: name, peer: peer, try reader.checkpoint())
        case .seen:
            let name = try reader.datasetName()
            return .seen(name: name, try reader.vector())
        case .renamed:
            return .renamed(try reader.replicaID())
        case .adopted:
            let name = try reader.datasetName()
            let adopted = try AdoptedState(from: &reader)
            guard DatasetName.fits(name, number: adopted.records) else {
                throw Malformed("a dataset takes over records with a number of another sort")
            }
            return .adopted(name: name, adopted)
        case .disowned:
            let name = try reader.datasetName()
            return .disowned(
                name: name, try reader.replicaID(), isSettled: try reader.byte() == 1)
        case .forgotten:
            let name = try reader.datasetName()
            return .forgotten(name: name, try reader.forgottenDeletions())
        case .retired:
            let name = try reader.datasetName()
            return .retired(name: name, try reader.replicaID())
        case .origin:
            return .origin(
                Origin(
                    replica: try reader.varint32(), vector: try reader.varint32(),
                    author: try reader.varint32()))
        case .entry:
            return try entry(originCount: originCount)
        case .dated:
            return .dated
        case .copied:
            return .copied(try reader.replicaID())
        }
    }

    /// The same, for a block of which it is known where it lies.
    mutating func next(
        originCount: Int, at offset: Int, of log: LogSegment
    ) throws(StoreError) -> LogItem? {
        try log.decoding(at: offset) { () throws(Malformed) in
            try next(originCount: originCount)
        }
    }

    private mutating func entry(originCount: Int) throws(Malformed) -> LogItem {
        let start = unsafe payload.base + reader.offset
        let (entry, end) = unsafe try EntryLayout.checkedEntry(
            at: start, end: payload.base + payload.count, timeBase: timeBase,
            originCount: originCount)
        _ = unsafe try reader.view(end - start)
        let stamp = entry.stamp
        // A deletion without a counter is the mark of a dropped record.
        guard entry.dataset > 0, !entry.key.isEmpty,
            stamp.counter > 0 || entry.kind == .delete, stamp.syncCount > 0,
            !entry.isSuperseded, !entry.isApart
        else { throw Malformed("an operation has an impossible field") }
        return unsafe .entry(entry, at: start)
    }
}

extension LogSegment {
    /// Takes something apart, and says where it lay if it is malformed.
    @inline(__always)
    func decoding<Result>(
        at offset: Int, _ body: () throws(Malformed) -> Result
    ) throws(StoreError) -> Result {
        do throws(Malformed) {
            return try body()
        } catch {
            throw error.error(in: path, at: UInt64(offset))
        }
    }
}

extension ByteReader {
    mutating func datasetName() throws(Malformed) -> String {
        let name = try countedText(max: Limits.datasetNameBytesMax)
        guard DatasetName.isStorable(name) else {
            throw Malformed("a dataset has an invalid name")
        }
        return name
    }

    mutating func lifecycle() throws(Malformed) -> DatasetLifecycle {
        DatasetLifecycle(
            isDeleted: try byte() != 0, wiped: try vector(),
            time: HybridTime(rawValue: try fixed64()), replica: try replicaID())
    }

    mutating func forgottenDeletions() throws(Malformed) -> ForgottenDeletions {
        ForgottenDeletions(
            vector: try vector(), time: HybridTime(rawValue: try fixed64()))
    }

    mutating func checkpoint() throws(Malformed) -> PeerCheckpoint {
        PeerCheckpoint(
            pulledThrough: SyncCount(rawValue: try varintCount()),
            pushedThrough: SyncCount(rawValue: try varintCount()), vector: try vector())
    }
}
