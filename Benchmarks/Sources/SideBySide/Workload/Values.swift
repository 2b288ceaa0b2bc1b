/// Values of which half is redundant: each run of 100 bytes is 50 random ones, twice.
///
/// A value is a window of one pool, at a place that its record's number and version decide, so
/// that making it costs nothing and any reader can check it. It begins with a whole run: one that
/// began anywhere would, at 100 bytes, have 75 different ones on average.
final class Values: @unchecked Sendable {
    // Written once in `init`, then only read: any thread may read it.
    private let pool: UnsafeMutableRawBufferPointer
    private static let runBytes = 100
    private static let runCount = 10_485
    /// About as much as fits into the second-level cache.
    private static let poolBytes = runCount * runBytes

    /// - Parameter bytes: the size of each value, 1...16 MiB.
    let bytes: Int

    init(bytes: Int) {
        self.bytes = bytes
        pool = .allocate(byteCount: Self.poolBytes + bytes, alignment: 64)
        var random = SplitMix(seed: 0x7469_6465)
        var place = 0
        while place < pool.count {
            let half = Self.runBytes / 2
            let end = min(place + Self.runBytes, pool.count)
            for index in place..<min(place + half, end) {
                pool[index] = UInt8(truncatingIfNeeded: random.next())
            }
            for index in min(place + half, end)..<end {
                pool[index] = pool[index - half]
            }
            place = end
        }
        // Were they alike, an engine that compresses would be measured on nothing.
        let beginnings = Set((0..<1_000).map { self[$0].loadUnaligned(as: UInt64.self) })
        precondition(beginnings.count > 900, "the values of different records are the same")
    }

    deinit { pool.deallocate() }

    /// What the physical limits work on: the same bytes as the engines.
    var all: UnsafeRawBufferPointer { UnsafeRawBufferPointer(pool) }

    /// The value of a record; `version` tells an overwritten value from the one before.
    @inline(__always)
    subscript(number: Int, version: Int = 0) -> UnsafeRawBufferPointer {
        var mixed = UInt64(truncatingIfNeeded: number &+ version &* 0x1_0001)
        mixed = mixed &* 0x9E37_79B9_7F4A_7C15
        // The upper 32 bits, scaled to the number of runs.
        let run = Int(truncatingIfNeeded: ((mixed >> 32) &* UInt64(Self.runCount)) >> 32)
        let place = run &* Self.runBytes
        return UnsafeRawBufferPointer(
            start: UnsafeRawPointer(pool.baseAddress!) + place, count: bytes)
    }
}
