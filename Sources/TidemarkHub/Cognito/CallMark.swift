/// By which a call of UpdateRecords is known again when it comes a second time, because its answer
/// was lost: by its session token, by whom it names as the writer, and by its patches.
///
/// What was written alone would not do: two devices that count one up from 5 both write 6, and the
/// second one must be refused. A session token is given to one listing of one device alone.
struct CallMark: Hashable, Sendable {
    static let count = 16

    /// The first bytes of a SHA-256. Stored.
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// O(bytes of the patches).
    init(session: SyncSession, author: String, patches: [RecordPatch]) {
        let writer = Array(author.utf8)
        // Each text behind its length: no two calls are the same bytes.
        var parts = [BigEndian.bytes(UInt64(session.id.count)), session.id]
        parts += [BigEndian.bytes(UInt64(writer.count)), writer]
        for patch in patches {
            var head = BigEndian.bytes(patch.count) + BigEndian.bytes(UInt64(patch.key.count))
            // No value is so long, and no date negative.
            head += BigEndian.bytes(patch.value.map { UInt64($0.count) } ?? .max)
            head += BigEndian.bytes(UInt64(bitPattern: patch.deviceMilliseconds ?? -1))
            parts += [head, patch.key, patch.value ?? []]
        }
        var digest = Digests.sha256(ofParts: parts)[...]
        high = BigEndian.take(&digest) ?? 0
        low = BigEndian.take(&digest) ?? 0
    }

    var bytes: [UInt8] { BigEndian.bytes(high) + BigEndian.bytes(low) }

    /// Takes one from the front; nil if there are too few bytes.
    static func take(_ bytes: inout ArraySlice<UInt8>) -> CallMark? {
        guard bytes.count >= count, let high = BigEndian.take(&bytes),
            let low = BigEndian.take(&bytes)
        else { return nil }
        return CallMark(high: high, low: low)
    }
}
