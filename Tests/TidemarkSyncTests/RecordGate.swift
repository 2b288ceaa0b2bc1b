import Synchronization
import TestSupport
import Tidemark
import TidemarkSync

/// Refuses some records until it is opened, and counts what it was asked about.
final class RecordGate: Sendable {
    private struct Refusal: Error, CustomStringConvertible {
        let description = "no such value"
    }

    private let refuses: @Sendable (Record) -> Bool
    private let isShut = Mutex(true)
    private let asked = Mutex(0)

    /// - Parameter refuses: unless told otherwise, values that begin with "bad".
    init(
        refusing refuses: @escaping @Sendable (Record) -> Bool = { record in
            record.valueText?.hasPrefix("bad") ?? false
        }
    ) {
        self.refuses = refuses
    }

    var askedCount: Int { asked.withLock { $0 } }

    func open() { isShut.withLock { $0 = false } }

    func check(_ record: Record) throws {
        asked.withLock { $0 += 1 }
        if refuses(record), isShut.withLock({ $0 }) { throw Refusal() }
    }

    /// A responder that asks it.
    func before(_ replica: TestReplica) -> InMemoryTransport {
        InMemoryTransport(
            SyncResponder(store: replica.store, validate: { record in try self.check(record) }))
    }

    /// Of an asker that asks it.
    func options(
        _ policy: MergePolicy = .lastWriterWins, pageRecordsMax: Int? = nil
    ) -> SyncOptions {
        var options = SyncOptions(policy: policy)
        if let pageRecordsMax { options.pageRecordsMax = pageRecordsMax }
        options.validate = { record in try self.check(record) }
        return options
    }
}
