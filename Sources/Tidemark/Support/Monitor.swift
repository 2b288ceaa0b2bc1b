internal import Glibc

/// A lock with conditions to wait for: Hoare's and Hansen's monitor, by pthreads. It has one
/// condition of its own; others are made for those who must not be woken with all the rest.
///
/// `Mutex` of the Synchronization module serves wherever nobody has to wait for anything.
@safe
final class Monitor: @unchecked Sendable {
    // Sendable is unchecked because the pointer never changes and what it points to is made for
    // being used by many threads.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition = Condition()

    /// Something to wait for under the lock of a monitor.
    @safe
    final class Condition: @unchecked Sendable {
        // Unchecked: as above.
        fileprivate let pointer: UnsafeMutablePointer<pthread_cond_t>

        init() {
            unsafe pointer = .allocate(capacity: 1)
            unsafe pointer.initialize(to: pthread_cond_t())
            var attributes = pthread_condattr_t()
            // Waiting for a while is by a clock that nobody sets.
            let failures =
                unsafe pthread_condattr_init(&attributes)
                | pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
                | pthread_cond_init(pointer, &attributes)
            precondition(failures == 0, "no memory for a condition")
            unsafe pthread_condattr_destroy(&attributes)
        }

        deinit {
            unsafe pthread_cond_destroy(pointer)
            unsafe pointer.deallocate()
        }

        /// Wakes everybody who waits for it.
        func broadcast() {
            unsafe pthread_cond_broadcast(pointer)
        }
    }

    init() {
        unsafe mutex = .allocate(capacity: 1)
        unsafe mutex.initialize(to: pthread_mutex_t())
        let failure = unsafe pthread_mutex_init(mutex, nil)
        precondition(failure == 0, "no memory for a lock")
    }

    deinit {
        unsafe pthread_mutex_destroy(mutex)
        unsafe mutex.deallocate()
    }

    @inline(__always)
    func lock() {
        unsafe pthread_mutex_lock(mutex)
    }

    /// Takes the lock if nobody holds it.
    func tryLock() -> Bool {
        unsafe pthread_mutex_trylock(mutex) == 0
    }

    /// The same, and gives the processor up for so many turns until nobody holds it.
    func tryLock(turnsMax: Int) -> Bool {
        for _ in 0..<turnsMax {
            if tryLock() { return true }
            sched_yield()
        }
        return tryLock()
    }

    @inline(__always)
    func unlock() {
        unsafe pthread_mutex_unlock(mutex)
    }

    @inline(__always)
    func withLock<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock()
        defer { unlock() }
        return try body()
    }

    /// Gives up the lock until somebody broadcasts, and takes it again. Check the condition anew.
    func wait() {
        wait(for: condition)
    }

    /// Gives up the lock until somebody broadcasts to those who wait for that, and takes it again.
    func wait(for other: Condition) {
        unsafe pthread_cond_wait(other.pointer, mutex)
    }

    /// The same, but for no longer than so many milliseconds.
    func wait(milliseconds: UInt64) {
        var deadline = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &deadline)
        deadline.tv_sec += Int(milliseconds / 1_000)
        deadline.tv_nsec += Int(milliseconds % 1_000) * 1_000_000
        if deadline.tv_nsec >= 1_000_000_000 {
            deadline.tv_sec += 1
            deadline.tv_nsec -= 1_000_000_000
        }
        unsafe pthread_cond_timedwait(condition.pointer, mutex, &deadline)
    }

    /// Lets others have the lock, and the processor, if they want it.
    func yield() {
        unlock()
        sched_yield()
        lock()
    }

    /// Wakes everybody who waits.
    func broadcast() {
        condition.broadcast()
    }
}
