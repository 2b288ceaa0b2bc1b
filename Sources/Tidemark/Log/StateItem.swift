/// What a log says of a dataset, or of the store itself, beside its entries: as it is written.
/// ``LogItem`` says how each looks, and reads it.
enum StateItem {
    case dataset(DatasetID, isVisible: Bool, name: String, DatasetLifecycle)
    case checkpoint(PeerCheckpoint, of: ReplicaID, name: String)
    case seen(VersionVector, name: String)
    case renamed(ReplicaID)
    case adopted(AdoptedState, name: String)
    case disowned(ReplicaID, isSettled: Bool, name: String)
    case forgotten(ForgottenDeletions, name: String)
    case retired(ReplicaID, name: String)
    case copied(ReplicaID)

    func write(to sink: inout some ByteSink) {
        sink.append(byte: code.rawValue)
        switch self {
        case .dataset(let id, let isVisible, let name, let lifecycle):
            sink.append(counted: name)
            sink.append(varint: UInt64(id))
            sink.append(byte: isVisible ? 1 : 0)
            sink.append(lifecycle)
        case .checkpoint(let checkpoint, let peer, let name):
            sink.append(counted: name)
            sink.append(peer)
            sink.append(checkpoint)
        case .seen(let vector, let name):
            sink.append(counted: name)
            sink.append(vector)
        case .renamed(let id), .copied(let id):
            sink.append(id)
        case .adopted(let adopted, let name):
            sink.append(counted: name)
            adopted.write(to: &sink)
        case .disowned(let replica, let isSettled, let name):
            sink.append(counted: name)
            sink.append(replica)
            sink.append(byte: isSettled ? 1 : 0)
        case .forgotten(let deletions, let name):
            sink.append(counted: name)
            sink.append(deletions)
        case .retired(let peer, let name):
            sink.append(counted: name)
            sink.append(peer)
        }
    }

    private var code: LogItem.Code {
        switch self {
        case .dataset: .dataset
        case .checkpoint: .checkpoint
        case .seen: .seen
        case .renamed: .renamed
        case .adopted: .adopted
        case .disowned: .disowned
        case .forgotten: .forgotten
        case .retired: .retired
        case .copied: .copied
        }
    }

    /// The bytes that it takes.
    var byteCount: Int {
        var counter = ByteCounter()
        write(to: &counter)
        return counter.count
    }
}

/// What gets a number in the tables of a log, so that entries can name it.
enum DefinitionItem {
    case replica(ReplicaID)
    /// The number of each replica, and its counter.
    case vector([(replica: UInt32, counter: UInt64)])
    case author(String)
    case origin(Origin)

    func write(to sink: inout some ByteSink) {
        switch self {
        case .replica(let id):
            sink.append(byte: LogItem.Code.replica.rawValue)
            sink.append(id)
        case .vector(let entries):
            sink.append(byte: LogItem.Code.vector.rawValue)
            sink.append(varint: entries.count)
            for entry in entries {
                sink.append(varint: UInt64(entry.replica))
                sink.append(varint: entry.counter)
            }
        case .author(let author):
            sink.append(byte: LogItem.Code.author.rawValue)
            sink.append(counted: author)
        case .origin(let origin):
            sink.append(byte: LogItem.Code.origin.rawValue)
            sink.append(varint: UInt64(origin.replica))
            sink.append(varint: UInt64(origin.vector))
            sink.append(varint: UInt64(origin.author))
        }
    }

    /// The bytes that the definitions of one version can take: its replica, its author, its origin,
    /// and a vector of so many entries with their replicas.
    static func byteCountMax(vectorCount: Int) -> Int {
        bytesOfOne + vectorCount * bytesOfEntry
    }

    private static let bytesOfOne = {
        var counter = ByteCounter()
        replica(ReplicaID(high: 0, low: 0)).write(to: &counter)
        author(String(repeating: "a", count: Limits.authorBytesMax)).write(to: &counter)
        origin(Origin(replica: .max, vector: .max, author: .max)).write(to: &counter)
        vector([]).write(to: &counter)
        // The number of entries.
        counter.append(varint: UInt64(UInt32.max))
        return counter.count
    }()

    private static let bytesOfEntry = {
        var counter = ByteCounter()
        replica(ReplicaID(high: 0, low: 0)).write(to: &counter)
        counter.append(varint: UInt64(UInt32.max))
        counter.append(varint: UInt64.max)
        return counter.count
    }()
}
