import Tidemark

/// What tells one held write of a dataset from all others.
///
/// A dot names one write, unless a store went back in time or was copied: then two may be held that
/// have the same dot, and neither must take the other's place. So the name has a hash of what was
/// written, too.
struct HeldName: Hashable, Sendable {
    let dot: Dot
    /// XXH3-64 of key, date, value and expiry. nil of what was kept by an earlier version of this
    /// software, under the dot alone.
    let content: UInt64?

    init(dot: Dot, content: UInt64?) {
        self.dot = dot
        self.content = content
    }

    /// The name of a write, whatever its version has been joined with. O(bytes of the record).
    init(_ record: Record) {
        var writer = ByteWriter()
        writer.putBytes(record.key)
        writer.putFixed(record.version.time.rawValue)
        writer.putFlag(record.value != nil)
        writer.putBytes(record.value ?? [])
        writer.putVarint(record.expiresAt ?? 0)
        dot = record.version.dot
        content = MessageFrame.checksum(writer.bytes[...])
    }

    /// The same under the dot alone.
    var plain: HeldName { HeldName(dot: dot, content: nil) }

    /// 16 bytes replica, 8 bytes counter and, if there is one, 8 bytes hash.
    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.putFixed(dot.replica.high)
        writer.putFixed(dot.replica.low)
        writer.putFixed(dot.counter)
        if let content { writer.putFixed(content) }
        return writer.bytes
    }

    /// nil if the bytes are no such name.
    init?(_ bytes: ArraySlice<UInt8>) {
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            let high = try reader.takeFixed(UInt64.self)
            let low = try reader.takeFixed(UInt64.self)
            let counter = try reader.takeFixed(UInt64.self)
            content = try bytes.count > Self.plainBytes ? reader.takeFixed(UInt64.self) : nil
            try reader.finish()
            guard counter > 0 else { return nil }
            dot = Dot(replica: ReplicaID(high: high, low: low), counter: counter)
        } catch {
            return nil
        }
    }

    /// Of a name without a hash.
    private static let plainBytes = 24
}
