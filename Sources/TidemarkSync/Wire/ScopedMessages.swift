import Tidemark

// What a partial replica asks for: the changes of its part, and single records by their keys. Its
// pushes are those of any replica, but under a kind of their own, so that nobody takes them for the
// word of one who has seen everything.

/// Asks for the changes of a part.
struct ScopedPullRequest: Hashable, Sendable {
    var address: Address
    /// In the responder's order of change, as in ``PullRequest``.
    var since: SyncCount
    var recordsMax: Int
    var bytesMax: Int
    var scope: SyncScope
    /// What the asker had of the responder up to a count under an earlier scope, and still has as
    /// far as it belongs to the new one.
    var former: Former?
    var batons: [Baton] = []
    /// The responder's disputed ids, as the asker knows of them.
    var disputed: [ReplicaID] = []
    /// Whether the asker knows that the responder keeps a part, too, and so concludes nothing from
    /// what it is not told. Of such an asker nothing is noted.
    var takesOnly = false

    struct Former: Hashable, Sendable {
        var scope: SyncScope
        var through: SyncCount
    }
}

/// That the newest version of a key does not belong to the scope.
struct OutsideNotice: Hashable, Sendable {
    var key: [UInt8]
    var dot: Dot
    /// All that the version has seen, the dot included.
    var vector: VersionVector

    init(key: [UInt8], dot: Dot, vector: VersionVector) {
        self.key = key
        self.dot = dot
        self.vector = vector
    }

    init(key: [UInt8], _ version: Version) {
        self.init(key: key, dot: version.dot, vector: version.vector)
    }

    /// For comparing: it tells neither time nor author.
    var version: Version { Version(dot: dot, vector: vector, time: .zero) }
}

struct ScopedPullAnswer: Hashable, Sendable {
    /// Records that belong to the scope, and tombstones of those that may have.
    var page: RecordPage
    /// Of other keys than the page.
    var outside: [OutsideNotice]
    /// In the responder's order of change: deletions up to here may be forgotten. Whoever was told
    /// of less cannot be told of them.
    var forgottenThrough = SyncCount.zero
}

/// Asks how single records are now.
struct LookupRequest: Hashable, Sendable {
    struct Item: Hashable, Sendable {
        var key: [UInt8]
        /// The write that the asker has, which need not be sent; nil to be told in any case.
        var dot: Dot?
    }

    var address: Address
    /// nil: whatever they hold.
    var scope: SyncScope?
    var bytesMax: Int
    /// Of different keys.
    var items: [Item]
}

/// Of what is asked for and not told of, the asker has the newest version.
struct LookupAnswer: Hashable, Sendable {
    /// How many of the items this is about, from the first; at least one.
    var answered: Int
    /// Without a position: only its records and what is known with them count.
    var page: RecordPage
    var outside: [OutsideNotice]
    /// Keys of which there is nothing at all, not even a tombstone.
    var missing: [[UInt8]]
}

// MARK: - As bytes

extension ScopedPullRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.plain {
            $0.putVarint(since.rawValue)
            $0.putCount(recordsMax)
            $0.putCount(bytesMax)
            $0.putBytes(scope.encoded)
            $0.putFlag(former != nil)
            if let former {
                $0.putBytes(former.scope.encoded)
                $0.putVarint(former.through.rawValue)
            }
        }
        writer.putBatons(batons)
        writer.putReplicas(disputed)
        writer.plain { $0.putFlag(takesOnly) }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        since = try reader.takeSyncCount()
        recordsMax = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
        bytesMax = try reader.takeNumber(max: SyncLimits.pageBytesMax)
        scope = try reader.takeScope()
        former = nil
        if try reader.takeFlag() {
            let scope = try reader.takeScope()
            former = Former(scope: scope, through: try reader.takeSyncCount())
        }
        batons = try reader.takeBatons()
        disputed = try reader.takeReplicas()
        takesOnly = try reader.takeFlag()
    }
}

extension ScopedPullAnswer {
    func write(to writer: inout VersionWriter) {
        writer.putPage(page)
        writer.putNotices(outside)
        writer.plain { $0.putVarint(forgottenThrough.rawValue) }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        page = try reader.takePage()
        outside = try reader.takeNotices()
        forgottenThrough = try reader.takeSyncCount()
    }
}

extension LookupRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.plain {
            $0.putFlag(scope != nil)
            if let scope { $0.putBytes(scope.encoded) }
            $0.putCount(bytesMax)
            $0.putCount(items.count)
        }
        for item in items {
            writer.plain {
                $0.putBytes(item.key)
                $0.putFlag(item.dot != nil)
            }
            guard let dot = item.dot else { continue }
            writer.putReplica(dot.replica)
            writer.plain { $0.putVarint(dot.counter) }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        scope = try reader.takeFlag() ? try reader.takeScope() : nil
        bytesMax = try reader.takeNumber(max: SyncLimits.pageBytesMax)
        items = []
        let count = try reader.takeCount(
            of: "keys", bytesEach: 2, max: SyncLimits.lookupKeysMax)
        for _ in 0..<count {
            let key = try reader.takeKey()
            var item = Item(key: key)
            if try reader.takeFlag() {
                let replica = try reader.takeReplica()
                let counter = try reader.plain { reader throws(SyncError) in
                    try reader.takeVarint()
                }
                item.dot = Dot(replica: replica, counter: counter)
            }
            items.append(item)
        }
    }
}

extension LookupAnswer {
    func write(to writer: inout VersionWriter) {
        writer.putPage(page)
        writer.putNotices(outside)
        writer.plain {
            $0.putCount(missing.count)
            for key in missing { $0.putBytes(key) }
            $0.putCount(answered)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        page = try reader.takePage()
        outside = try reader.takeNotices()
        missing = []
        let count = try reader.takeCount(of: "keys", max: SyncLimits.lookupKeysMax)
        for _ in 0..<count { missing.append(try reader.takeKey()) }
        answered = try reader.takeNumber(max: SyncLimits.lookupKeysMax)
    }
}

extension VersionWriter {
    /// Varint n, then n times counted key, replica, varint counter, varint own entry of the vector
    /// less the counter, vector without the own entry.
    fileprivate mutating func putNotices(_ notices: [OutsideNotice]) {
        plain { $0.putCount(notices.count) }
        for notice in notices {
            plain { $0.putBytes(notice.key) }
            putReplica(notice.dot.replica)
            plain {
                $0.putVarint(notice.dot.counter)
                $0.putVarint(notice.vector[notice.dot.replica] - notice.dot.counter)
            }
            putVector(notice.vector.removing(notice.dot.replica))
        }
    }
}

extension VersionReader {
    fileprivate mutating func takeNotices() throws(SyncError) -> [OutsideNotice] {
        let count = try takeCount(
            of: "notices", bytesEach: 6, max: SyncLimits.pageRecordsMax)
        var notices: [OutsideNotice] = []
        notices.reserveCapacity(count)
        for _ in 0..<count {
            let key = try takeKey()
            let replica = try takeReplica()
            let (counter, highest) = try plain { reader throws(SyncError) in
                let counter = try reader.takeVarint()
                let (highest, overflow) = counter.addingReportingOverflow(
                    try reader.takeVarint())
                guard counter > 0, !overflow else {
                    throw reader.failure("a version contradicts itself")
                }
                return (counter, highest)
            }
            var vector = try takeVector()
            guard vector[replica] == 0 else {
                throw .badMessage("a version has two entries of its own replica")
            }
            vector.insert(Dot(replica: replica, counter: highest))
            let dot = Dot(replica: replica, counter: counter)
            notices.append(OutsideNotice(key: key, dot: dot, vector: vector))
        }
        return notices
    }

    fileprivate mutating func takeKey() throws(SyncError) -> [UInt8] {
        try plain { reader throws(SyncError) in
            let key = try reader.takeBytes("key", max: Limits.keyBytesMax)
            guard !key.isEmpty else { throw reader.failure("a key is empty") }
            return key
        }
    }

    fileprivate mutating func takeScope() throws(SyncError) -> SyncScope {
        let bytes = try plain { reader throws(SyncError) in
            try reader.takeBytes("scope", max: SyncScope.bytesMax)
        }
        return try SyncScope(decoding: bytes)
    }
}
