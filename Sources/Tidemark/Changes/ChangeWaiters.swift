internal import Synchronization

/// Whose changes somebody waits for.
enum ChangeInterest: Sendable {
    case all
    case named([String])
}

/// Tasks that sleep until a dataset changes, or any does.
///
/// Whoever changes a dataset finds those who wait for it by its name, so that of very many who wait
/// for others nobody is disturbed, and a write costs no more for them.
final class ChangeWaiters: Sendable {
    private struct Sleeper {
        let interest: ChangeInterest
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Mailbox {
        let interest: ChangeInterest
        weak var mailbox: ChangeMailbox?
    }

    private struct Waiters {
        private var next = 0
        private(set) var sleepers: [Int: Sleeper] = [:]
        private var mailboxes: [Int: Mailbox] = [:]
        /// Sleepers and mailboxes to whom all changes matter.
        private var ofAll: Set<Int> = []
        /// The others, by the names of datasets; none is empty.
        private var ofNamed: [String: Set<Int>] = [:]
        var isClosed = false

        mutating func takeToken() -> Int {
            next += 1
            return next
        }

        mutating func add(_ sleeper: Sleeper, as token: Int) {
            sleepers[token] = sleeper
            note(token, sleeper.interest)
        }

        mutating func add(_ mailbox: Mailbox, as token: Int) {
            mailboxes[token] = mailbox
            note(token, mailbox.interest)
        }

        mutating func removeSleeper(_ token: Int) -> Sleeper? {
            guard let sleeper = sleepers.removeValue(forKey: token) else { return nil }
            forget(token, sleeper.interest)
            return sleeper
        }

        mutating func removeMailbox(_ token: Int) {
            guard let mailbox = mailboxes.removeValue(forKey: token) else { return }
            forget(token, mailbox.interest)
        }

        /// To whom a change of a dataset matters. O(answer).
        func interested(in dataset: String) -> (mailboxes: [ChangeMailbox], sleepers: [Int]) {
            var found: [ChangeMailbox] = []
            var tokens: [Int] = []
            for set in [ofAll, ofNamed[dataset] ?? []] {
                for token in set {
                    if let mailbox = mailboxes[token]?.mailbox { found.append(mailbox) }
                    if sleepers[token] != nil { tokens.append(token) }
                }
            }
            return (found, tokens)
        }

        private mutating func note(_ token: Int, _ interest: ChangeInterest) {
            switch interest {
            case .all: ofAll.insert(token)
            case .named(let names): for name in names { ofNamed[name, default: []].insert(token) }
            }
        }

        private mutating func forget(_ token: Int, _ interest: ChangeInterest) {
            switch interest {
            case .all: ofAll.remove(token)
            case .named(let names):
                for name in names {
                    ofNamed[name]?.remove(token)
                    if ofNamed[name]?.isEmpty ?? false { ofNamed[name] = nil }
                }
            }
        }
    }

    private let waiters = Mutex(Waiters())
    /// Never below the number of sleepers and mailboxes: it grows with them, under their lock. Were
    /// one taken off that is not counted yet, somebody else would seem not to be there.
    private let count = Atomic<Int>(0)

    /// Sleeps until a dataset changes that is waited for, the store is closed or the task is
    /// cancelled.
    ///
    /// - Parameter isDue: asked after the sleeper is known to the wakers; true means that there is
    ///   already something, so that no change between looking and sleeping is missed.
    func wait(for interest: ChangeInterest, isDue: @Sendable () -> Bool) async {
        let token = waiters.withLock { $0.takeToken() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isRefused = waiters.withLock { waiters in
                    guard !waiters.isClosed else { return true }
                    waiters.add(
                        Sleeper(interest: interest, continuation: continuation), as: token)
                    count.wrappingAdd(1, ordering: .sequentiallyConsistent)
                    return false
                }
                guard !isRefused else { return continuation.resume() }
                if isDue() || Task.isCancelled { wake(token) }
            }
        } onCancel: {
            wake(token)
        }
    }

    /// A mailbox that is told of every dataset that changes from now on and is asked about.
    func openMailbox(for interest: ChangeInterest = .all) -> ChangeMailbox {
        let token = waiters.withLock { $0.takeToken() }
        let mailbox = ChangeMailbox(token, of: self)
        waiters.withLock { waiters in
            waiters.add(Mailbox(interest: interest, mailbox: mailbox), as: token)
            count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        }
        return mailbox
    }

    fileprivate func removeMailbox(_ token: Int) {
        waiters.withLock { $0.removeMailbox(token) }
        count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    /// Wakes whoever waits for the dataset. Costs one load when nobody waits for anything.
    func wakeAll(for dataset: String) {
        // What the store notes for itself is no change to anybody.
        guard count.load(ordering: .sequentiallyConsistent) > 0, !DatasetName.isSystem(dataset)
        else { return }
        // Mailboxes leave the lock, since the last to let one go takes it.
        let (mailboxes, tokens) = waiters.withLock { $0.interested(in: dataset) }
        for mailbox in mailboxes {
            mailbox.add(dataset)
        }
        for token in tokens {
            wake(token)
        }
    }

    var isClosed: Bool { waiters.withLock { $0.isClosed } }

    var sleeperCount: Int { waiters.withLock { $0.sleepers.count } }

    func close() {
        let tokens = waiters.withLock { waiters in
            waiters.isClosed = true
            return Array(waiters.sleepers.keys)
        }
        for token in tokens {
            wake(token)
        }
    }

    private func wake(_ token: Int) {
        let sleeper = waiters.withLock { $0.removeSleeper(token) }
        guard let sleeper else { return }
        count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        sleeper.continuation.resume()
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
