import Glibc
import Synchronization

/// Runs each body on a thread of its own, waits for all, and throws the first error of any.
///
/// Threads rather than tasks: the bodies block, which the pool behind tasks (as many threads as
/// processors) does not bear.
package func runOnThreads(_ bodies: [@Sendable () throws -> Void]) throws {
    let failures = Mutex<[any Error]>([])
    let group = ThreadGroup()
    for body in bodies {
        group.start {
            do { try body() } catch { failures.withLock { $0.append(error) } }
        }
    }
    group.join()
    if let first = failures.withLock({ $0.first }) { throw first }
}

/// Threads that are waited for together. A body must not outlive what it captured by reference.
package final class ThreadGroup: Sendable {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let threads = Mutex<[pthread_t]>([])

    package init() {}

    package func start(_ body: @escaping @Sendable () -> Void) {
        let thread = Self.create(body)
        threads.withLock { $0.append(thread) }
    }

    /// Starts a thread that nobody waits for, and of which nothing is left once it has ended.
    package static func startDetached(_ body: @escaping @Sendable () -> Void) {
        pthread_detach(create(body))
    }

    private static func create(_ body: @escaping @Sendable () -> Void) -> pthread_t {
        // The reference passed on is released by the new thread when it takes it back.
        let retained = unsafe Unmanaged.passRetained(Body(body))
        var thread = pthread_t()
        let result = unsafe pthread_create(
            &thread, nil,
            { argument in
                if let argument = unsafe argument {
                    unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                }
                return nil
            },
            retained.toOpaque())
        precondition(result == 0, "a test could not start a thread")
        return thread
    }

    package func join() {
        let started = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in started { pthread_join(thread, nil) }
    }
}
