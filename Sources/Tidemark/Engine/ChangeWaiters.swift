internal import Synchronization

/// Tasks that sleep until a dataset changes.
final class ChangeWaiters: Sendable {
    private struct Waiter {
        let dataset: String
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Waiters {
        var next = 0
        var waiting: [Int: Waiter] = [:]
        var isClosed = false
    }

    private let waiters = Mutex(Waiters())
    private let count = Atomic<Int>(0)

    /// Sleeps until the dataset changes, the store is closed or the task is cancelled.
    ///
    /// - Parameter isDue: asked after the sleeper is known to the wakers; true means that there is
    ///   already something, so that no change between looking and sleeping is missed.
    func wait(for dataset: String, isDue: @Sendable () -> Bool) async {
        let token = waiters.withLock { waiters in
            waiters.next += 1
            return waiters.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isRefused = waiters.withLock { waiters in
                    guard !waiters.isClosed else { return true }
                    waiters.waiting[token] = Waiter(dataset: dataset, continuation: continuation)
                    return false
                }
                guard !isRefused else { return continuation.resume() }
                count.wrappingAdd(1, ordering: .sequentiallyConsistent)
                if isDue() || Task.isCancelled { wake(token) }
            }
        } onCancel: {
            wake(token)
        }
    }

    /// Wakes whoever waits for the dataset. Costs one load when nobody does.
    func wakeAll(for dataset: String) {
        guard count.load(ordering: .sequentiallyConsistent) > 0 else { return }
        let tokens = waiters.withLock { waiters in
            waiters.waiting.filter { $0.value.dataset == dataset }.map(\.key)
        }
        for token in tokens {
            wake(token)
        }
    }

    func close() {
        let tokens = waiters.withLock { waiters in
            waiters.isClosed = true
            return Array(waiters.waiting.keys)
        }
        for token in tokens {
            wake(token)
        }
    }

    private func wake(_ token: Int) {
        let waiter = waiters.withLock { $0.waiting.removeValue(forKey: token) }
        guard let waiter else { return }
        count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        waiter.continuation.resume()
    }
}
