internal import Synchronization

/// Bits that many threads may set, each once.
@safe
final class AtomicBitmap: @unchecked Sendable {
    // Unchecked: all that is behind the pointer is atomic.
    private let words: UnsafeMutablePointer<Atomic<UInt64>>
    let count: Int

    /// All clear.
    init(count: Int) {
        self.count = count
        let wordCount = max(1, (count + 63) / 64)
        unsafe words = .allocate(capacity: wordCount)
        for index in 0..<wordCount {
            unsafe (words + index).initialize(to: Atomic(0))
        }
    }

    deinit {
        unsafe words.deallocate()
    }

    /// - Parameter index: below `count`.
    @inline(__always)
    subscript(index: Int) -> Bool {
        precondition(index >= 0 && index < count, "a bit beyond the last")
        let word = unsafe (words + index >> 6).pointee.load(ordering: .acquiring)
        return word >> UInt64(index & 63) & 1 == 1
    }

    func set(_ index: Int) {
        precondition(index >= 0 && index < count, "a bit beyond the last")
        unsafe (words + index >> 6).pointee.bitwiseOr(
            1 << UInt64(index & 63), ordering: .releasing)
    }
}
