/// Memory that is taken piece by piece and given back all at once.
@safe
final class Arena {
    private static let chunkBytes = 256 << 10
    private var chunks: [UnsafeMutableRawPointer] = unsafe []
    private var next: UnsafeMutableRawPointer
    private var remaining = 0

    init() {
        unsafe next = UnsafeMutableRawPointer(bitPattern: 16)!
    }

    deinit {
        unsafe chunks.forEach { unsafe $0.deallocate() }
    }

    /// Uninitialised memory, aligned to 8 bytes, valid as long as the arena.
    func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
        let rounded = (byteCount + 7) & ~7
        if rounded > remaining {
            let size = max(Self.chunkBytes, rounded)
            unsafe next = .allocate(byteCount: size, alignment: 16)
            unsafe chunks.append(next)
            remaining = size
        }
        defer {
            unsafe next += rounded
            remaining -= rounded
        }
        return unsafe next
    }
}
