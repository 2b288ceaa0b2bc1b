internal import Synchronization

/// Memory in which a value is decompressed for the time of a look. One piece of it is kept for
/// the next value: a fresh one costs a page fault for each 4 KiB, which is more than to
/// decompress them.
final class ValueRoom: Sendable {
    /// The largest piece that is kept; what is more goes back to the system at once.
    static let bytesKeptMax = 4 << 20
    /// Pieces are multiples of it, so that values of about one size share them.
    private static let bytesStep = 64 << 10

    @safe
    private struct Piece: @unchecked Sendable {
        // Unchecked: whoever has taken it out of `spare` has it alone.
        let memory: UnsafeMutableRawBufferPointer
    }

    private let spare = Mutex<Piece?>(nil)

    deinit {
        let last = spare.withLock { $0 }
        if let last { unsafe Pages.deallocate(last.memory) }
    }

    /// How much memory is kept, in bytes.
    var bytesKept: Int { spare.withLock { unsafe $0?.memory.count ?? 0 } }

    /// Hands out memory of that many bytes, with whatever is in it, during the call.
    func with<Result>(
        byteCount: Int,
        _ body: (UnsafeMutableRawBufferPointer) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let piece = take(byteCount)
        defer { giveBack(piece) }
        return try unsafe body(UnsafeMutableRawBufferPointer(rebasing: piece.memory[..<byteCount]))
    }

    private func take(_ byteCount: Int) -> Piece {
        let kept = spare.withLock { spare -> Piece? in
            guard let piece = spare, unsafe piece.memory.count >= byteCount else { return nil }
            spare = nil
            return piece
        }
        if let kept { return kept }
        let whole = (byteCount + Self.bytesStep - 1) / Self.bytesStep * Self.bytesStep
        return unsafe Piece(memory: Pages.allocate(byteCount: max(whole, Self.bytesStep)))
    }

    /// Of two the larger one stays.
    private func giveBack(_ piece: Piece) {
        let needless = spare.withLock { spare -> Piece? in
            let isKept =
                unsafe piece.memory.count <= Self.bytesKeptMax
                && piece.memory.count > spare?.memory.count ?? 0
            guard isKept else { return piece }
            let former = spare
            spare = piece
            return former
        }
        if let needless { unsafe Pages.deallocate(needless.memory) }
    }
}
