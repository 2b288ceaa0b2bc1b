/// Which datasets of a store change, as they do, for one consumer at a time. No record is read for
/// it, and a dataset that changes a thousand times before it is asked for is named once.
package final class ChangedDatasets: Sendable {
    private let waiters: ChangeWaiters
    private let mailbox: ChangeMailbox

    init(_ waiters: ChangeWaiters) {
        self.waiters = waiters
        mailbox = waiters.openMailbox()
    }

    /// Those that have changed since they were last given, in their order, as soon as there are
    /// any; none only if the task is cancelled or the store is closed.
    package func next() async -> [String] {
        let mailbox = mailbox
        while !Task.isCancelled, !waiters.isClosed {
            let names = mailbox.takeAll()
            guard names.isEmpty else { return names }
            await waiters.wait(for: .all) { !mailbox.isEmpty }
        }
        return []
    }

    /// Those that have changed since they were last given, at once.
    package func takeAll() -> [String] { mailbox.takeAll() }
}

extension Store {
    /// Names of datasets that change from now on, be it by a write, a page of an exchange, a
    /// deletion or something that is noted of them.
    package func changedDatasets() -> ChangedDatasets { ChangedDatasets(engine.waiters) }
}
