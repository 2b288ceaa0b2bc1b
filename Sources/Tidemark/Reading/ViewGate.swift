internal import Glibc
internal import Synchronization

/// The present view, for readers who must not wait for anyone nor slow each other down.
///
/// A reader of one record announces itself in a counter that it shares with few other threads,
/// uses the view without counting a reference, and leaves. A view that was replaced is let go once
/// every reader that may have seen it has left: when the counters of both phases have each been
/// seen at zero after the replacement, new readers having been sent to the other phase in between
/// (sleepable read-copy-update: McKenney, "Sleepable RCU", 2006). Nobody waits for that; it is
/// looked at when background work ends. Not when the next view comes: that is under the writer's
/// lock, and to unmap a log and free a memtable takes milliseconds.
@safe
final class ViewGate: @unchecked Sendable {
    // Unchecked: the counters are atomics in memory of their own.

    private static let stripeCount = 16
    /// Two cache lines, since processors fetch them in pairs.
    private static let stripeBytes = 128

    private struct Retired {
        let view: ReadView
        /// Phases in which nobody can be that has seen the view.
        var isClear = [false, false]
    }

    private struct State {
        var current: ReadView
        var retired: [Retired] = []
    }

    /// Who reads on from time to time, and is to let go of a view once it is replaced.
    let holders = ViewHolders()
    private let state: Mutex<State>
    private let address: Atomic<UInt>
    private let phase = Atomic<Int>(0)
    private let counters: UnsafeMutableRawPointer

    init(_ view: ReadView) {
        state = Mutex(State(current: view))
        address = Atomic(UInt(bitPattern: unsafe Unmanaged.passUnretained(view).toOpaque()))
        let byteCount = 2 * Self.stripeCount * Self.stripeBytes
        unsafe counters = .allocate(byteCount: byteCount, alignment: Self.stripeBytes)
        for index in 0..<(2 * Self.stripeCount) {
            unsafe (counters + index * Self.stripeBytes)
                .bindMemory(to: Atomic<Int>.self, capacity: 1).initialize(to: Atomic(0))
        }
    }

    deinit {
        unsafe counters.deallocate()
    }

    /// For those who keep it: snapshots, cursors, background work.
    var current: ReadView { state.withLock { $0.current } }

    /// Whether a view that the caller holds has not been replaced.
    func isCurrent(_ view: ReadView) -> Bool {
        let pointer = unsafe UInt(bitPattern: Unmanaged.passUnretained(view).toOpaque())
        return address.load(ordering: .sequentiallyConsistent) == pointer
    }

    @inline(__always)
    private func counter(phase: Int, stripe: Int) -> UnsafeMutablePointer<Atomic<Int>> {
        unsafe (counters + (phase * Self.stripeCount + stripe) * Self.stripeBytes)
            .assumingMemoryBound(to: Atomic<Int>.self)
    }

    /// A reader's stay. Whoever enters must leave.
    @safe
    struct Pass {
        fileprivate let counter: UnsafeMutablePointer<Atomic<Int>>
        /// Good until the reader leaves.
        let view: Unmanaged<ReadView>
    }

    @inline(__always)
    func enter() -> Pass {
        // Threads have their descriptors, whose address this is, pages apart.
        let spread = UInt64(pthread_self()) &* 0x9E37_79B9_7F4A_7C15
        let stripe = Int(spread >> 60)
        let counter = unsafe counter(
            phase: phase.load(ordering: .sequentiallyConsistent), stripe: stripe)
        unsafe counter.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent)
        let pointer = unsafe UnsafeRawPointer(
            bitPattern: address.load(ordering: .sequentiallyConsistent))!
        return unsafe Pass(counter: counter, view: .fromOpaque(pointer))
    }

    @inline(__always)
    func leave(_ pass: Pass) {
        unsafe pass.counter.pointee.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    /// Puts another view in the place of the present one.
    func replace(_ change: (ReadView) -> ReadView) {
        state.withLock { state in
            let next = change(state.current)
            state.retired.append(Retired(view: state.current))
            state.current = next
            address.store(
                UInt(bitPattern: unsafe Unmanaged.passUnretained(next).toOpaque()),
                ordering: .sequentiallyConsistent)
        }
        holders.letGo()
    }

    /// How often reclaiming looks again, after pauses that begin with 0.1 ms and double.
    private static let looksMax = 8
    private static let pauseMicroseconds: UInt32 = 100

    /// Lets go of the views that nobody can see any more. Not under the writer's lock.
    ///
    /// A thread that reads all the time is in one of the phases at nearly any moment, so one look
    /// is seldom enough, and what stays is a memtable and the file of a log. So this gives readers
    /// some milliseconds at most to leave the phase that they are in; the rest waits for the next
    /// call.
    func reclaim() {
        for look in 0..<Self.looksMax {
            let (free, isDone) = state.withLock { state in
                let free = reclaim(&state)
                return (free, state.retired.isEmpty)
            }
            // Views go outside the lock, too: what they hold may take a while to free.
            withExtendedLifetime(free) {}
            guard !isDone else { return }
            usleep(Self.pauseMicroseconds << UInt32(look))
        }
    }

    private func reclaim(_ state: inout State) -> [Retired] {
        let active = phase.load(ordering: .sequentiallyConsistent)
        for candidate in 0..<2 where isIdle(candidate) {
            for index in state.retired.indices {
                state.retired[index].isClear[candidate] = true
            }
        }
        // Readers to come announce themselves on the other side, so that this one drains.
        phase.store(1 - active, ordering: .sequentiallyConsistent)
        let free = state.retired.filter { $0.isClear == [true, true] }
        state.retired.removeAll { $0.isClear == [true, true] }
        return free
    }

    private func isIdle(_ phase: Int) -> Bool {
        for stripe in 0..<Self.stripeCount {
            if unsafe counter(phase: phase, stripe: stripe).pointee.load(
                ordering: .sequentiallyConsistent) != 0
            {
                return false
            }
        }
        return true
    }
}
