/// What takes the bytes of an item: memory, a block of a log, or a count.
///
/// Whoever must know beforehand how many bytes something takes runs the code that writes it with a
/// ``ByteCounter``.
protocol ByteSink {
    mutating func append(byte: UInt8)

    mutating func append(fixed64 number: UInt64)

    /// LEB128: seven bits a byte, the lowest first, the eighth bit set on all but the last.
    mutating func append(varint number: UInt64)

    mutating func append(_ view: ByteView)
}

extension ByteSink {
    mutating func append(varint number: Int) {
        append(varint: UInt64(number))
    }

    /// The length as a varint, then the bytes of UTF-8.
    mutating func append(counted text: String) {
        var text = text
        text.withUTF8 { bytes in
            append(varint: bytes.count)
            unsafe append(ByteView(UnsafeRawBufferPointer(bytes)))
        }
    }

    mutating func append(_ id: ReplicaID) {
        append(fixed64: id.high.byteSwapped)
        append(fixed64: id.low.byteSwapped)
    }

    /// A whole vector, with the replicas spelled out; for the few places outside of segments.
    mutating func append(_ vector: VersionVector) {
        append(varint: vector.count)
        for dot in vector.dots {
            append(dot.replica)
            append(varint: dot.counter)
        }
    }

    mutating func append(_ lifecycle: DatasetLifecycle) {
        append(byte: lifecycle.isDeleted ? 1 : 0)
        append(lifecycle.wiped)
        append(fixed64: lifecycle.time.rawValue)
        append(lifecycle.replica)
    }

    mutating func append(_ deletions: ForgottenDeletions) {
        append(deletions.vector)
        append(fixed64: deletions.time.rawValue)
    }

    mutating func append(_ checkpoint: PeerCheckpoint) {
        append(varint: checkpoint.pulledThrough.rawValue)
        append(varint: checkpoint.pushedThrough.rawValue)
        append(checkpoint.vector)
    }
}

/// Counts bytes, and puts them nowhere.
struct ByteCounter: ByteSink {
    private(set) var count = 0

    mutating func append(byte: UInt8) { count += 1 }

    mutating func append(fixed64 number: UInt64) { count += 8 }

    mutating func append(varint number: UInt64) {
        count += max(1, (UInt64.bitWidth - number.leadingZeroBitCount + 6) / 7)
    }

    mutating func append(_ view: ByteView) { count += view.count }
}
