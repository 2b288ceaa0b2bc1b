/// The records of a page as they lie in a message: keys and values are not copied, and replicas,
/// vectors and authors, which recur in almost every record, are there once.
///
/// A page that was made has been checked: whatever its numbers name is there, each key is within
/// bounds and there once. What a record may not be, such as one with an impossible counter, is
/// refused when the page is merged, as it is of records that come one by one.
package struct MergePage: Sendable {
    /// Who made a version, what that had seen of others, and its author: as numbers in the page's
    /// tables.
    package struct Origin: Hashable, Sendable {
        package var replica: UInt32
        /// Without an entry of the replica itself.
        package var vector: UInt32
        package var author: UInt32

        package init(replica: UInt32, vector: UInt32, author: UInt32) {
            self.replica = replica
            self.vector = vector
            self.author = author
        }
    }

    /// One record. Offsets are in the bytes of the page.
    package struct Item: Sendable {
        package var keyOffset: UInt32 = 0
        package var keyCount: UInt32 = 0
        package var valueOffset: UInt32 = 0
        package var valueCount: UInt32 = 0
        /// In the page's list of origins.
        package var origin: UInt32 = 0
        /// Without a value it is a tombstone.
        package var hasValue = false
        package var counter: UInt64 = 0
        /// The replica's own entry in the vector of the version: not below the counter.
        package var highest: UInt64 = 0
        package var time: UInt64 = 0
        /// In milliseconds since 1970; 0 if it does not expire.
        package var expiresAt: UInt64 = 0
        /// In the sender's order of change.
        package var syncCount: UInt64 = 0

        package init() {}
    }

    package let bytes: [UInt8]
    package let items: [Item]
    package let origins: [Origin]
    package let replicas: [ReplicaID]
    package let vectors: [VersionVector]
    package let authors: [String]

    /// Checks the whole page. O(records + bytes of keys).
    ///
    /// - Throws: `invalidArgument` saying what is wrong.
    package init(
        bytes: [UInt8], items: [Item], origins: [Origin], replicas: [ReplicaID],
        vectors: [VersionVector], authors: [String]
    ) throws(StoreError) {
        self.bytes = bytes
        self.items = items
        self.origins = origins
        self.replicas = replicas
        self.vectors = vectors
        self.authors = authors
        for origin in origins {
            guard origin.replica < replicas.count, origin.vector < vectors.count,
                origin.author < authors.count,
                vectors[Int(origin.vector)][replicas[Int(origin.replica)]] == 0
            else { throw Self.refused("a version contradicts itself") }
        }
        for item in items {
            guard Int(item.keyOffset) + Int(item.keyCount) <= bytes.count,
                Int(item.valueOffset) + Int(item.valueCount) <= bytes.count,
                item.keyCount > 0, item.origin < origins.count, item.highest >= item.counter
            else { throw Self.refused("a record reaches out of its page") }
        }
        try checkKeys()
    }

    private static func refused(_ what: String) -> StoreError {
        StoreError(.invalidArgument, "\(what); update the peer")
    }

    /// Each key may be there once: records are compared with what was here before the page came.
    ///
    /// Keys that rise, as those of a sweep and of what was swept, are all different. For others an
    /// open table of their numbers. The hash is the one of the standard library, whose seed no
    /// peer knows, so that nobody can choose keys that meet in one place.
    private func checkKeys() throws(StoreError) {
        if isInOrder(within: .all) { return }
        var bits = 4
        while items.count * 2 > 1 << bits { bits += 1 }
        let mask = 1 << bits - 1
        var places = [UInt32](repeating: 0, count: 1 << bits)
        try bytes.withBytes { (all) throws(StoreError) in
            for index in items.indices {
                let key = Self.key(of: items[index], in: all)
                var hasher = Hasher()
                unsafe hasher.combine(bytes: key.buffer)
                var place = hasher.finalize() & mask
                while places[place] != 0 {
                    let other = Self.key(of: items[Int(places[place]) - 1], in: all)
                    guard !other.equals(key) else {
                        throw Self.refused("a page names a key twice")
                    }
                    place = (place + 1) & mask
                }
                places[place] = UInt32(index + 1)
            }
        }
    }

    /// - Parameter all: the bytes of the page.
    @inline(__always)
    static func key(of item: Item, in all: ByteView) -> ByteView {
        // That it ends within the page was checked when the page was made.
        unsafe ByteView(base: all.base + Int(item.keyOffset), count: Int(item.keyCount))
    }

    /// - Parameter all: the bytes of the page.
    @inline(__always)
    static func value(of item: Item, in all: ByteView) -> ByteView {
        // As above.
        unsafe ByteView(base: all.base + Int(item.valueOffset), count: Int(item.valueCount))
    }

    // MARK: - One by one

    package func key(at index: Int) -> [UInt8] {
        let item = items[index]
        return Array(bytes[Int(item.keyOffset)..<(Int(item.keyOffset) + Int(item.keyCount))])
    }

    /// Whether its keys rise from one record to the next, and all are of a range.
    package func isInOrder(within range: KeyRange) -> Bool {
        unsafe bytes.withUnsafeBytes { buffer in
            let all = unsafe ByteView(buffer)
            var last: ByteView?
            for item in items {
                let key = Self.key(of: item, in: all)
                if let last, last.compare(key) >= 0 { return false }
                last = key
            }
            guard let first = items.first, let last else { return true }
            return range.contains(Self.key(of: first, in: all)) && range.contains(last)
        }
    }

    func version(of item: Item) -> Version {
        let origin = origins[Int(item.origin)]
        let replica = replicas[Int(origin.replica)]
        var vector = vectors[Int(origin.vector)]
        vector.insert(Dot(replica: replica, counter: item.highest))
        return Version(
            dot: Dot(replica: replica, counter: item.counter), vector: vector,
            time: HybridTime(rawValue: item.time), author: authors[Int(origin.author)])
    }

    /// A copy that stands for itself.
    package func record(at index: Int) -> Record {
        let item = items[index]
        let start = Int(item.valueOffset)
        return Record(
            key: key(at: index),
            value: item.hasValue ? Array(bytes[start..<start + Int(item.valueCount)]) : nil,
            version: version(of: item), syncCount: SyncCount(rawValue: item.syncCount),
            isDirty: false, expiresAt: item.expiresAt > 0 ? item.expiresAt : nil)
    }

    /// The latest time of any of its versions.
    package var latestTime: HybridTime {
        HybridTime(rawValue: items.reduce(0) { max($0, $1.time) })
    }
}

/// What becomes of a version that is concurrent with the one that is here and differs from it.
package enum MergeRule: Hashable, Sendable {
    /// The later one stays, with what both had seen.
    case lastWriterWins
    /// It is told and left alone, as is the checkpoint; everything else is applied.
    case leave
    /// Nothing at all is applied.
    case refuse
}

/// What is noted together with the records of a page.
package struct MergeEnd: Sendable {
    package var peer: ReplicaID
    /// In the peer's order of change: everything up to here is here once the page is.
    package var through: SyncCount
    /// What the peer had seen, as far as the page claims any of it.
    package var vector: VersionVector
    /// What the peer had seen when it read the page, whatever that claims, without what it holds
    /// because of its date; empty if that is not known. Then no merges share a vector.
    package var told = VersionVector()
    /// The same of what had been seen here before the page is merged.
    package var ours = VersionVector()
    /// Whether all that the vector speaks of is here once the page is.
    package var isLast: Bool
    /// In our order of change: the peer says that it has everything up to here.
    package var acknowledged: SyncCount
    /// Records of the store's own datasets that stand or fall with the rest; stored also if a
    /// conflict was left.
    package var notes: [SystemNote] = []
    /// The same of what is noted only if a record of the page is stored.
    package var traces: [SystemNote] = []
    /// Who stands behind the page.
    package var meeting: Meeting?

    package init(
        peer: ReplicaID, through: SyncCount, vector: VersionVector, isLast: Bool,
        acknowledged: SyncCount = .zero
    ) {
        self.peer = peer
        self.through = through
        self.vector = vector
        self.isLast = isLast
        self.acknowledged = acknowledged
    }
}

/// What a page came to.
package struct MergeOutcome: Sendable {
    /// A version that was concurrent with the one here.
    package struct Conflict: Sendable {
        /// In the page.
        package let index: Int
        package let staysRemote: Bool
    }

    /// False if the rule refused it: then nothing has changed.
    package internal(set) var isApplied = true
    /// Records that were stored; each counts one in the order of change.
    package internal(set) var stored = 0
    /// Of these, the ones without a conflict that are another write than the one that was here.
    package internal(set) var replaced = 0
    /// In the page, the records after which another write is here than before, in their order.
    package internal(set) var changed: [UInt32] = []
    package internal(set) var conflicts: [Conflict] = []
    /// The count before the first of them.
    package internal(set) var syncCountBefore = SyncCount.zero
}
