/// What of each record goes into a sum.
enum SumKind: Hashable, Sendable {
    /// Which version it is, and nothing that must be read for it: what replicas compare range by
    /// range to find out where they differ. Tombstones count, but for those that one of the two has
    /// forgotten.
    ///
    /// XXH3-128 over the hash of the version's origin, its counter, its writer's entry in the
    /// version's vector, time, time of expiry, a byte for its form, and the key. The origin is the
    /// writer and what that had seen of others. The form is 1 for a value, 2 for a tombstone, and
    /// 0 for either where the record expires, since both mean the same then.
    case versions
    /// What ``Dataset/digest()`` says, of live records alone.
    case contents
}

/// Hashes records of one moment, and is not kept for longer: what it remembers of origins goes by
/// where their tables lie in memory.
struct RecordHasher {
    private struct OriginKey: Hashable {
        let tables: ObjectIdentifier
        let number: UInt32
    }

    private struct Origin {
        let hash: RecordHash
        /// The writer's own entry in the vector as it is stored; 0 if the dot says it.
        let own: UInt64
    }

    private let kind: SumKind
    private var writer = ByteWriter()
    private var origins: [OriginKey: Origin] = [:]
    private var last: (key: OriginKey, origin: Origin)?

    init(_ kind: SumKind) {
        self.kind = kind
    }

    /// - Throws: `corruption` or `inputOutput` if the value is wanted, lies apart, and cannot be
    ///   read.
    mutating func hash(
        _ entry: Entry, _ tables: VersionTables
    ) throws(StoreError) -> RecordHash {
        switch kind {
        case .versions: writeVersion(of: entry, tables)
        case .contents: try writeContents(of: entry, tables)
        }
        return hashWritten()
    }

    private func hashWritten() -> RecordHash {
        unsafe writer.bytes.withUnsafeBytes { unsafe checksum128($0) }
    }

    private mutating func writeVersion(of entry: Entry, _ tables: VersionTables) {
        let stamp = entry.stamp
        let origin = origin(stamp.origin, tables)
        writer.removeAll()
        writer.append(fixed64: origin.hash.high)
        writer.append(fixed64: origin.hash.low)
        writer.append(fixed64: stamp.counter)
        writer.append(fixed64: max(stamp.counter, origin.own))
        writer.append(fixed64: stamp.time)
        writer.append(fixed64: stamp.expiresAt)
        writer.append(byte: entry.hasExpiry ? 0 : entry.kind.rawValue)
        writer.append(entry.key)
    }

    private mutating func origin(_ number: UInt32, _ tables: VersionTables) -> Origin {
        let key = OriginKey(tables: ObjectIdentifier(tables), number: number)
        if let last, last.key == key { return last.origin }
        let found: Origin
        if let known = origins[key] {
            found = known
        } else {
            let (replica, vector, _) = tables.source(of: number)
            writer.removeAll()
            writer.append(replica)
            writer.append(vector.removing(replica))
            found = Origin(hash: hashWritten(), own: vector[replica])
            origins[key] = found
        }
        last = (key, found)
        return found
    }

    /// - Parameter entry: of a live record.
    private mutating func writeContents(
        of entry: Entry, _ tables: VersionTables
    ) throws(StoreError) {
        writer.removeAll()
        let dot = tables.dot(of: entry)
        writer.append(dot.replica)
        writer.append(fixed64: dot.counter)
        writer.append(fixed64: entry.stamp.time)
        writer.append(byte: EntryKind.put.rawValue)
        writer.append(fixed64: entry.expiresAt)
        writer.append(counted: entry.key)
        guard entry.isApart else { return writer.append(counted: entry.valueField) }
        let value = try tables.value(of: entry)
        writer.append(varint: value.count)
        writer.append(value)
    }
}
