/// What one entry of the store does to its key. The numbers are stored.
enum EntryKind: UInt8 {
    case put = 1
    case delete = 2
}

/// The number of a dataset inside its store; a dataset that was deleted and made again has a new
/// one. 0 holds the store's own records.
typealias DatasetID = UInt32

/// A place in the order of all entries: dataset, then key, then the newest first.
struct EntryPosition {
    let dataset: DatasetID
    let key: ByteView
    let syncCount: UInt64

    /// Before every version of the key.
    init(before key: ByteView, in dataset: DatasetID) {
        self.init(dataset: dataset, key: key, syncCount: .max)
    }

    init(dataset: DatasetID, key: ByteView, syncCount: UInt64) {
        self.dataset = dataset
        self.key = key
        self.syncCount = syncCount
    }

    /// Negative, 0 or positive.
    @inline(__always)
    func compare(_ other: EntryPosition) -> Int {
        if dataset != other.dataset { return dataset < other.dataset ? -1 : 1 }
        let order = key.compare(other.key)
        if order != 0 { return order }
        return syncCount == other.syncCount ? 0 : (syncCount > other.syncCount ? -1 : 1)
    }
}

/// One version of one record as it lies in a memtable or a sealed segment. Borrowed: good as long
/// as the cursor that gave it stands where it stood, or the block or mapping is held.
struct Entry {
    var dataset: DatasetID
    var kind: EntryKind
    var key: ByteView
    var value: ByteView
    var syncCount: UInt64
    /// The place in the order of all commits of the store; 0 in sealed segments, where whoever
    /// holds the segment may see all of it.
    var sequence: UInt64
    /// Numbers in the ``VersionTables`` of the source.
    var replica: UInt32
    var vector: UInt32
    var author: UInt32
    var counter: UInt64
    var time: UInt64

    var position: EntryPosition {
        EntryPosition(dataset: dataset, key: key, syncCount: syncCount)
    }
}

extension ByteReader {
    /// What an entry says of its version, in the log and in data blocks alike.
    mutating func stamp() throws(Malformed) -> (
        replica: UInt32, counter: UInt64, time: UInt64, vector: UInt32, author: UInt32
    ) {
        (
            replica: try varint32(), counter: try varint(), time: try fixed64(),
            vector: try varint32(), author: try varint32()
        )
    }
}
