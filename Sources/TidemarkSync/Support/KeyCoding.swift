import Tidemark

// Keys in their order mostly begin alike, so each is written as how many bytes it shares with the
// one before and the rest.

struct KeyWriter {
    private var last: [UInt8] = []

    mutating func put(_ key: [UInt8], to writer: inout ByteWriter) {
        let most = min(last.count, key.count)
        var shared = 0
        while shared < most, last[shared] == key[shared] { shared += 1 }
        writer.putCount(shared)
        writer.putBytes(key[shared...])
        last = key
    }
}

struct KeyReader {
    private var last: [UInt8] = []
    /// A few bytes may stand for a long key, and there may be many of them.
    private var bytesLeft = SyncLimits.comparedKeyBytesMax

    mutating func take(from reader: inout ByteReader) throws(SyncError) -> [UInt8] {
        let shared = try reader.takeVarint()
        guard shared <= UInt64(last.count) else {
            throw reader.failure("a key shares \(shared) bytes with one of \(last.count)")
        }
        // No key that was taken is longer than the bound.
        let rest = try reader.takeBytes("key", max: Limits.keyBytesMax - Int(shared))
        let key = Array(last.prefix(Int(shared))) + rest
        guard key.count <= bytesLeft else {
            throw SyncError(
                .tooLarge,
                "the keys of a message have more than \(SyncLimits.comparedKeyBytesMax) bytes; "
                    + "update the sender")
        }
        bytesLeft -= key.count
        last = key
        return key
    }

    /// The next one of a list in order, in which none is empty.
    mutating func take(
        after previous: [UInt8]?, from reader: inout ByteReader
    ) throws(SyncError) -> [UInt8] {
        let key = try take(from: &reader)
        guard !key.isEmpty, previous.map({ $0.lexicographicallyPrecedes(key) }) ?? true else {
            throw reader.failure("keys are not in order")
        }
        return key
    }
}
