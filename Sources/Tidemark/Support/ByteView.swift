internal import Glibc

/// Bytes that somebody else owns: a key or value inside a mapped segment, a cached block or the
/// caller's array.
///
/// The rule that makes it right to call this type safe: a view is made from a pointer and a count
/// in one place (the decoder that has just checked both, or the `withBytes` of an array), is only
/// passed down, and is never stored anywhere that outlives the owner named there.
@safe
struct ByteView {
    let base: UnsafeRawPointer
    let count: Int

    init(base: UnsafeRawPointer, count: Int) {
        unsafe self.base = base
        self.count = count
    }

    init(_ buffer: UnsafeRawBufferPointer) {
        unsafe self.init(base: buffer.baseAddress ?? ByteView.nowhere, count: buffer.count)
    }

    /// Where the empty view points: aligned, not nil, and nothing is read there.
    private static var nowhere: UnsafeRawPointer { unsafe UnsafeRawPointer(bitPattern: 8)! }

    static var empty: ByteView { unsafe ByteView(base: nowhere, count: 0) }

    var isEmpty: Bool { count == 0 }

    var buffer: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: base, count: count)
    }

    /// A copy that owns its bytes.
    var array: [UInt8] {
        // That initializer writes the count 0 into the one empty array that all threads share.
        guard count > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { target, initializedCount in
            unsafe memcpy(target.baseAddress!, base, count)
            initializedCount = count
        }
    }

    /// Order of the bytes, a prefix before what it begins: negative, 0 or positive.
    @inline(__always)
    func compare(_ other: ByteView) -> Int {
        let order = unsafe memcmp(base, other.base, min(count, other.count))
        return order != 0 ? Int(order) : count - other.count
    }

    @inline(__always)
    func equals(_ other: ByteView) -> Bool {
        unsafe count == other.count && memcmp(base, other.base, count) == 0
    }

    /// How many bytes both begin with, up to a bound.
    func commonPrefixCount(with other: ByteView, max: Int) -> Int {
        let bound = min(count, other.count, max)
        var index = 0
        while index < bound,
            unsafe base.load(fromByteOffset: index, as: UInt8.self)
                == other.base.load(fromByteOffset: index, as: UInt8.self)
        {
            index += 1
        }
        return index
    }

    /// The first eight bytes as a big-endian number, with zeros for what is missing: decides most
    /// comparisons without touching the key itself.
    var prefix: UInt64 {
        if count >= 8 {
            return unsafe UInt64(bigEndian: base.loadUnaligned(as: UInt64.self))
        }
        var number: UInt64 = 0
        for index in 0..<count {
            number |=
                unsafe UInt64(base.load(fromByteOffset: index, as: UInt8.self))
                << UInt64(56 - 8 * index)
        }
        return number
    }
}

extension Array where Element == UInt8 {
    /// The array's bytes as a view, valid during the call.
    @inline(__always)
    func withBytes<Result>(
        _ body: (ByteView) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try unsafe withUnsafeBufferPointer { (buffer) throws(StoreError) -> Result in
            try unsafe body(ByteView(UnsafeRawBufferPointer(buffer)))
        }
    }
}

extension RawSpan {
    /// The span's bytes as a view, valid during the call.
    @inline(__always)
    func withBytes<Result>(
        _ body: (ByteView) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try unsafe withUnsafeBytes { (buffer) throws(StoreError) -> Result in
            try unsafe body(ByteView(buffer))
        }
    }

    /// A copy that owns its bytes.
    var copied: [UInt8] {
        unsafe withUnsafeBytes { unsafe ByteView($0).array }
    }
}
