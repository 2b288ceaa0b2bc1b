internal import Synchronization

/// Tasks that sleep until a dataset changes, or any does.
final class ChangeWaiters: Sendable {
    private struct Waiter {
        /// nil: any.
        let dataset: String?
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Mailbox {
        weak var mailbox: ChangeMailbox?
    }

    private struct Waiters {
        var next = 0
        var waiting: [Int: Waiter] = [:]
        var mailboxes: [Int: Mailbox] = [:]
        var isClosed = false
    }

    private let waiters = Mutex(Waiters())
    private let count = Atomic<Int>(0)

    /// Sleeps until the dataset changes, the store is closed or the task is cancelled.
    ///
    /// - Parameters:
    ///   - dataset: nil for any.
    ///   - isDue: asked after the sleeper is known to the wakers; true means that there is already
    ///     something, so that no change between looking and sleeping is missed.
    func wait(for dataset: String?, isDue: @Sendable () -> Bool) async {
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

    /// A mailbox that is told of every dataset that changes from now on.
    func openMailbox() -> ChangeMailbox {
        let number = waiters.withLock { waiters in
            waiters.next += 1
            return waiters.next
        }
        let mailbox = ChangeMailbox(number, of: self)
        waiters.withLock { $0.mailboxes[number] = Mailbox(mailbox: mailbox) }
        count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        return mailbox
    }

    fileprivate func removeMailbox(_ number: Int) {
        waiters.withLock { _ = $0.mailboxes.removeValue(forKey: number) }
        count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    /// Wakes whoever waits for the dataset. Costs one load when nobody does.
    func wakeAll(for dataset: String) {
        // What the store notes for itself is no change to anybody.
        guard count.load(ordering: .sequentiallyConsistent) > 0, !DatasetName.isSystem(dataset)
        else { return }
        let (mailboxes, tokens) = waiters.withLock { waiters in
            let tokens = waiters.waiting.filter { _, waiter in
                waiter.dataset == nil || waiter.dataset == dataset
            }
            return (waiters.mailboxes.values.compactMap(\.mailbox), Array(tokens.keys))
        }
        for mailbox in mailboxes {
            mailbox.add(dataset)
        }
        for token in tokens {
            wake(token)
        }
    }

    var isClosed: Bool { waiters.withLock { $0.isClosed } }

    var sleeperCount: Int { waiters.withLock { $0.waiting.count } }

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

/// The names of datasets that have changed since they were last taken out: each once, so it holds
/// no more than there are datasets.
final class ChangeMailbox: Sendable {
    private let number: Int
    private let waiters: ChangeWaiters
    private let names = Mutex<Set<String>>([])

    fileprivate init(_ number: Int, of waiters: ChangeWaiters) {
        self.number = number
        self.waiters = waiters
    }

    deinit {
        waiters.removeMailbox(number)
    }

    var isEmpty: Bool { names.withLock { $0.isEmpty } }

    func add(_ name: String) {
        names.withLock { _ = $0.insert(name) }
    }

    func takeAll() -> [String] {
        names.withLock { names in
            defer { names.removeAll() }
            return names.sorted()
        }
    }
}
