/// What a store keeps of conflicts and exchanges when they are over, in its own log and in one
/// batch with what they changed.
///
/// ```swift
/// var options = SyncOptions(policy: .keepRemote)
/// options.journal = SyncJournalOptions(conflictsMax: 10_000, policyVersion: 7)
/// ```
///
/// Numbers out of their bounds are moved into them when an exchange begins. All bounds hold for
/// each dataset by itself. What is beyond them goes with the next conflict or exchange that is
/// noted.
public struct SyncJournalOptions: Hashable, Sendable {
    /// Which settled conflicts are kept.
    public enum Scope: Hashable, Sendable {
        case nothing
        /// Those that a policy settled by a new write: all but the ones left to the last writer.
        case merges
        /// Those that the last writer won, too. A page in which there is such a conflict is then
        /// compared record by record, which takes several times as long.
        case everything
    }

    public var scope: Scope
    /// How many settled conflicts are kept, the newest: 0...100,000.
    public var conflictsMax: Int
    /// For how long they are kept: 0 to 100 years, by milliseconds.
    public var age: Duration
    /// A longer value is left out of a settled conflict, and only its length kept: 0...1 MiB.
    public var valueBytesMax: Int
    /// How many batches of exchanges are remembered, the newest, so that it can be told which of
    /// them brought a record: 0...10,000.
    public var exchangesMax: Int
    /// The application's number for its policies, kept with each conflict that they settle. To be
    /// raised whenever they change.
    public var policyVersion: UInt64

    public init(
        scope: Scope = .merges, conflictsMax: Int = 1_000, age: Duration = .seconds(2_592_000),
        valueBytesMax: Int = 16 << 10, exchangesMax: Int = 256, policyVersion: UInt64 = 0
    ) {
        self.scope = scope
        self.conflictsMax = conflictsMax
        self.age = age
        self.valueBytesMax = valueBytesMax
        self.exchangesMax = exchangesMax
        self.policyVersion = policyVersion
    }

    /// Keeps nothing.
    public static let off = SyncJournalOptions(scope: .nothing, conflictsMax: 0, exchangesMax: 0)

    /// The same with each number moved into its bounds.
    var bounded: SyncJournalOptions {
        var options = self
        options.conflictsMax = min(max(conflictsMax, 0), SyncLimits.journalConflictsMax)
        options.age = min(max(age, .zero), SyncLimits.journalAgeMax)
        options.valueBytesMax = min(max(valueBytesMax, 0), SyncLimits.journalValueBytesMax)
        options.exchangesMax = min(max(exchangesMax, 0), SyncLimits.journalExchangesMax)
        return options
    }

    /// Whether conflicts are kept that such a policy settles.
    func keeps(_ policy: SettledConflict.Policy) -> Bool {
        guard conflictsMax > 0 else { return false }
        switch scope {
        case .nothing: return false
        case .merges: return policy != .lastWriterWins
        case .everything: return true
        }
    }
}
