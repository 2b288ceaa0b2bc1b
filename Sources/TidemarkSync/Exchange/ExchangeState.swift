import Tidemark

// What an exchange of one dataset knows of itself, by what it is about. Each of these is changed by
// few files and read by many; none of them outlasts the exchange.

/// Where to go on in either order of change.
struct Positions {
    /// In the peer's.
    var pull = SyncCount.zero
    /// In ours.
    var push = SyncCount.zero
    /// What the peer remembers of how far we have pulled.
    var acknowledged = SyncCount.zero
    /// Everything here up to this count came from the peer as it lies there, or is known to be
    /// there.
    var adopted = SyncCount.zero
}

/// Which side lacks deletions that the other one has forgotten, and what was done about it. See
/// `SyncSession+FreshStart`.
struct Lateness {
    /// The fresh start of this side that is under way, by its number.
    var freshStart: UInt64?
    /// What the peer has forgotten with which was compared all that lay here at a count.
    var settled = (forgotten: ForgottenDeletions(), through: SyncCount.zero)
    /// Whether the peer lacks deletions that were forgotten here, so that each of its records is
    /// looked at for whether it is dead.
    var judgesPeer = false
    /// What was forgotten here when that began.
    var judging = VersionVector()
    /// Whether any of what is dead there was not told to the peer.
    var leavesDead = false
    /// What was forgotten here, once all that the peer had up to a count was looked at; empty if it
    /// lacks nothing.
    var judged = (forgotten: VersionVector(), through: SyncCount.zero)
    /// Whether this attempt found that either side is late.
    var isMet = false

    /// The peer lacks nothing, or another peer answers now.
    mutating func forgetJudged() { judged = (VersionVector(), .zero) }
}

/// Conflicts that wait, and what is in the way of a push because of them.
struct Waiting {
    typealias First = (key: [UInt8], reason: PendingConflict.Reason)

    /// The first one that is in the way of the push.
    var first: First?
    /// The first one with a held write that the policy left to the application.
    var firstHeld: First?
    /// Versions of which it was told in this exchange that they wait.
    var told: Set<Dot> = []
    /// Whether something was not taken in that cannot wait here, so that no position may move.
    var isFrozen = false
    /// Keys that the peer was asked for because a push met conflicts in them, each with the last
    /// attempt that did.
    var askedFor: [[UInt8]: Int] = [:]
    /// Keys of held writes with which the peer has found a conflict before.
    var metConflicts: Set<[UInt8]> = []
    /// Keys of held writes that are not handed over, because the peer has to settle them itself.
    var withheld: Set<[UInt8]> = []
}

/// What becomes of datasets that go into others: of such as are to go into this one, and of records
/// that went from this one. See `SyncSession+Merged`.
struct Moves {
    /// Datasets that are to go into this one, by the peer's account.
    var merged: [MergedDataset] = []
    /// Whether the handler was asked about them.
    var isAsked = false
    /// Merged datasets of which the peer is yet to be told what became of them.
    var retired: [String] = []
    /// Where records went from this dataset, as the peer is told.
    var told: [String] = []
    /// Whether the peer refused something because it does not know that we have what was moved.
    var isRefused = false
    /// Whether all was exchanged of which the peer says that records went there.
    var isTaken = false
    /// Datasets whose exchange waits for this one.
    let underWay: Set<String>
    /// Whether a dataset is to be exchanged with the peer anyway.
    let mayExchange: @Sendable (String) -> Bool
}

/// What has travelled, and what may.
struct Tally {
    /// How many records may still travel in this exchange.
    var recordsLeft: Int
    var recordsReceived = 0
    var recordsSent = 0
    /// Records that took the place of damaged ones.
    var recordsRestored = 0
    /// Why the first record that failed in this exchange did.
    var firstFailure: SyncError?
}
