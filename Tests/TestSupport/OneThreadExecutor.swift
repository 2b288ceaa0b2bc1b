import Glibc
import Synchronization

/// Runs tasks on the thread that asks for it, one piece at a time and in the order in which the
/// pieces became ready, so that what tasks do together follows from what each of them does.
///
/// As the preference of a task it also gets everything that the task calls and starts, functions
/// marked `@concurrent` included (Swift evolution proposal 417).
package final class OneThreadExecutor: TaskExecutor {
    private struct Ready {
        var jobs: [UnownedJob] = []
        var nextIndex = 0
        var strangerCount = 0
    }

    private let ready = Mutex(Ready())
    private let owner = pthread_self()

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isStranger = pthread_equal(owner, pthread_self()) == 0
        ready.withLock { ready in
            ready.jobs.append(job)
            if isStranger { ready.strangerCount += 1 }
        }
    }

    /// Runs the piece that has waited longest, on the calling thread. False if none waits.
    package func runNext() -> Bool {
        let next = ready.withLock { ready -> UnownedJob? in
            guard ready.nextIndex < ready.jobs.count else {
                ready.jobs.removeAll(keepingCapacity: true)
                ready.nextIndex = 0
                return nil
            }
            defer { ready.nextIndex += 1 }
            return ready.jobs[ready.nextIndex]
        }
        guard let next else { return false }
        // The reference is good as long as this object is, which outlives the call.
        unsafe next.runSynchronously(on: asUnownedTaskExecutor())
        return true
    }

    /// How often another thread than the first one made something ready. Anything but none is a
    /// leak through which the order of events depends on the machine.
    package var strangerCount: Int { ready.withLock { $0.strangerCount } }
}
