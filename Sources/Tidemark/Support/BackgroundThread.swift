internal import Glibc

/// The thread that asks.
enum CurrentThread {
    /// Not 0, and no other thread's while this one lives.
    static var id: UInt { UInt(pthread_self()) }
}

/// A thread of its own for work that blocks: sealing, compaction. Not a task, so that it never
/// takes one of the few threads of the concurrency runtime.
final class BackgroundThread: @unchecked Sendable {
    // Unchecked: `thread` is set once, before anybody else can see the object.
    private var thread: pthread_t

    init(_ body: @escaping @Sendable () -> Void) {
        thread = pthread_t()
        let box = unsafe Unmanaged.passRetained(Body(run: body))
        let failure = unsafe pthread_create(
            &thread, nil,
            { argument in
                let body = unsafe Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue()
                body.run()
                return nil
            }, box.toOpaque())
        precondition(failure == 0, "the system has no thread left (pthread_create: \(failure))")
    }

    /// Waits for the body to return. Call it once.
    func join() {
        pthread_join(thread, nil)
    }

    /// Waits for the body to return, unless it is the body that calls: then the thread cleans up
    /// after itself. Call it once, in place of `join`.
    func finish() {
        if pthread_equal(thread, pthread_self()) != 0 {
            pthread_detach(thread)
        } else {
            join()
        }
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }
}
