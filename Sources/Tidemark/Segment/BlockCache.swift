internal import Synchronization

/// Decompressed blocks for readers of single records: frames of one size in one piece of memory,
/// as many as fit into the bytes that the user allows.
///
/// A reader takes no lock: it adds a pin to the frame's state, and if the state shows the block it
/// looks for, the frame stays until it takes the pin away again. Whoever needs a frame takes one
/// that nobody has pinned or used since the hand last passed (CLOCK: Corbató, "A paging experiment
/// with the Multics system", 1968). Blocks that are larger than a frame are not kept.
///
/// Once the cache is full, three of four blocks that were missing do not come into it: they are
/// decompressed, as far as they are needed, into a frame that is lent for as long as the reader
/// looks at it. The fourth drives out another. What is asked for often is the fourth soon, and what
/// is not costs less and drives out nothing (Qureshi et al., "Adaptive insertion policies for high
/// performance caching", 2007: the bimodal one).
@safe
final class BlockCache: @unchecked Sendable {
    // Unchecked: a frame's memory and length are written only by whoever made its state busy, and
    // read only under a pin of a state that is not.

    /// The state of a frame: which block it holds, from the 16th bit; who uses it, below.
    private enum State {
        static let pin: UInt64 = 1
        static let pinsMask: UInt64 = 1 << 14 - 1
        static let wasUsed: UInt64 = 1 << 14
        static let isBusy: UInt64 = 1 << 15
        static let ownerShift: UInt64 = 16
    }

    private struct Frame: ~Copyable {
        let state = Atomic<UInt64>(0)
        var rawCount = 0
    }

    static let frameBytes = DataBlock.bytesMax + Block.slackBytes

    private struct Hands {
        var lent = -1
        var clock = -1
        var isFull = false
        var missCount = 0
    }

    /// Frames that are only lent: the first ones, and never many.
    private static let lentFramesMax = 32
    /// One of so many blocks that were missing is kept if there is no frame left.
    private static let keptEach = 4

    /// A frame that a reader has pinned.
    @safe
    struct Pinned {
        fileprivate let frame: Int
        let base: UnsafeRawPointer
        let rawCount: Int
    }

    private let frameCount: Int
    private let lentCount: Int
    private let frames: UnsafeMutablePointer<Frame>
    private let memory: UnsafeMutableRawPointer
    private let hands = Mutex(Hands())
    private let serials = Atomic<UInt64>(1)
    /// Whoever reads a damaged block says so here.
    let events: EventDelivery?

    /// - Parameter bytesMax: of memory; none is touched before it is needed.
    init(bytesMax: Int, events: EventDelivery? = nil) {
        self.events = events
        let bytesEachFrame = Self.frameBytes + MemoryLayout<Frame>.stride
        frameCount = min(bytesMax / bytesEachFrame, Int(Int32.max) - 1)
        lentCount = min(Self.lentFramesMax, frameCount / 8)
        unsafe frames = .allocate(capacity: max(1, frameCount))
        for index in 0..<frameCount {
            unsafe (frames + index).initialize(to: Frame())
        }
        unsafe memory = Pages.take(byteCount: frameCount * Self.frameBytes)
    }

    deinit {
        unsafe frames.deallocate()
        unsafe Pages.giveBack(memory, byteCount: frameCount * Self.frameBytes)
    }

    /// A number that no other segment of this cache has.
    func takeSerial() -> UInt64 {
        serials.wrappingAdd(1, ordering: .relaxed).oldValue
    }

    /// What stands for a block in the state of a frame; never 0.
    @inline(__always)
    static func owner(serial: UInt64, block: Int) -> UInt64 {
        (serial << 20 | UInt64(block)) << State.ownerShift
    }

    /// The frame that holds the block, pinned; nil if there is none.
    ///
    /// - Parameter slot: where the segment notes the block's frame, plus one; a hint.
    @inline(__always)
    func pin(_ owner: UInt64, slot: UnsafeMutablePointer<Atomic<UInt32>>) -> Pinned? {
        let noted = unsafe slot.pointee.load(ordering: .relaxed)
        guard noted != 0 else { return nil }
        let index = Int(noted) - 1
        let frame = unsafe frames + index
        let state = unsafe frame.pointee.state.wrappingAdd(
            State.pin, ordering: .acquiringAndReleasing
        ).oldValue
        guard state & ~(State.pinsMask | State.wasUsed) == owner else {
            unsafe frame.pointee.state.wrappingSubtract(State.pin, ordering: .releasing)
            return nil
        }
        if state & State.wasUsed == 0 {
            unsafe frame.pointee.state.bitwiseOr(State.wasUsed, ordering: .relaxed)
        }
        return unsafe Pinned(
            frame: index, base: memory + index * Self.frameBytes,
            rawCount: frame.pointee.rawCount)
    }

    @inline(__always)
    func unpin(_ pinned: Pinned) {
        unsafe (frames + pinned.frame).pointee.state.wrappingSubtract(
            State.pin, ordering: .releasing)
    }

    /// Fills a free frame with a block and pins it; nil if none can be had just now.
    ///
    /// - Parameter fill: writes the block; what it throws is thrown on.
    func fill(
        _ owner: UInt64, slot: UnsafeMutablePointer<Atomic<UInt32>>, rawCount: Int,
        _ fill: (UnsafeMutableRawBufferPointer) throws(StoreError) -> Void
    ) throws(StoreError) -> Pinned? {
        guard rawCount <= DataBlock.bytesMax, let index = takeFrame() else { return nil }
        let frame = unsafe frames + index
        let base = unsafe memory + index * Self.frameBytes
        do {
            try unsafe fill(UnsafeMutableRawBufferPointer(start: base, count: rawCount))
        } catch {
            unsafe frame.pointee.state.wrappingSubtract(State.isBusy, ordering: .releasing)
            throw error
        }
        unsafe frame.pointee.rawCount = rawCount
        // Others may have added a pin for a moment, and take it away again: so the state is
        // changed by a difference and never set.
        unsafe frame.pointee.state.wrappingAdd(
            owner &- State.isBusy &+ State.pin, ordering: .releasing)
        unsafe slot.pointee.store(UInt32(index + 1), ordering: .relaxed)
        return unsafe Pinned(frame: index, base: base, rawCount: rawCount)
    }

    /// How many frames the hand passes by, mostly because they were used since it last came: so
    /// that nobody waits for a round through a large cache of which all was used.
    private static let sparedMax = 64

    /// A frame of nobody's, busy. nil if two rounds of the clock's hand found none.
    private func takeFrame() -> Int? {
        guard frameCount > 0 else { return nil }
        return hands.withLock { hands in
            var passedCount = 0
            for _ in 0..<(2 * (frameCount - lentCount)) {
                hands.clock = max(hands.clock + 1, lentCount)
                if hands.clock == frameCount {
                    hands.isFull = true
                    hands.clock = lentCount
                }
                if take(hands.clock, sparingUsed: passedCount < Self.sparedMax) {
                    return hands.clock
                }
                passedCount += 1
            }
            return nil
        }
    }

    /// A frame for a block that is not to be kept, pinned until it is given back by ``unpin(_:)``.
    /// nil if the block may be kept, or no frame can be had just now.
    ///
    /// - Parameter rawCount: of the block, at most ``DataBlock/bytesMax``.
    func lend(rawCount: Int) -> (Pinned, memory: UnsafeMutableRawBufferPointer)? {
        guard lentCount > 0, rawCount <= DataBlock.bytesMax else { return nil }
        let taken: Int? = hands.withLock { hands in
            hands.missCount &+= 1
            guard hands.isFull, hands.missCount % Self.keptEach != 0 else { return nil }
            hands.lent = hands.lent + 1 < lentCount ? hands.lent + 1 : 0
            return take(hands.lent, sparingUsed: false) ? hands.lent : nil
        }
        guard let index = taken else { return nil }
        unsafe (frames + index).pointee.state.wrappingAdd(
            State.pin &- State.isBusy, ordering: .releasing)
        let base = unsafe memory + index * Self.frameBytes
        return unsafe (
            Pinned(frame: index, base: base, rawCount: rawCount),
            UnsafeMutableRawBufferPointer(start: base, count: rawCount)
        )
    }

    /// Makes a frame busy, unless somebody else uses it or, if that spares it, has used it.
    private func take(_ index: Int, sparingUsed: Bool) -> Bool {
        let frame = unsafe frames + index
        let state = unsafe frame.pointee.state.load(ordering: .relaxed)
        if state & (State.pinsMask | State.isBusy) != 0 { return false }
        if sparingUsed, state & State.wasUsed != 0 {
            unsafe frame.pointee.state.bitwiseAnd(~State.wasUsed, ordering: .relaxed)
            return false
        }
        return unsafe frame.pointee.state.compareExchange(
            expected: state, desired: State.isBusy, ordering: .acquiringAndReleasing
        ).exchanged
    }
}
