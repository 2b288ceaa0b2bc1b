public import Tidemark

/// What became of each dataset of an exchange of several.
///
/// ```swift
/// let report = await store.synchronizeEach(with: transport)
/// for outcome in report.datasets where outcome.error != nil {
///     print("\(outcome.dataset): \(outcome.error?.message ?? "")")
/// }
/// ```
public struct SyncReport: Hashable, Sendable {
    /// The other side, once it has said who it is.
    public internal(set) var peer: ReplicaID?
    /// One for each dataset that was asked for or that either side told of before the exchange
    /// ended, in the order of their names. Of one that nobody asked for by its name, and in which
    /// neither side has changed anything since the last exchange of all datasets, nothing is told.
    public internal(set) var datasets: [DatasetOutcome] = []
    /// Why the exchange ended before all datasets had their turn: nobody answers, or this store
    /// takes no writes any more. nil if every dataset had its turn, whatever came of it.
    public internal(set) var error: SyncError?
    /// Bytes of all messages, those included that are about no dataset in particular.
    public internal(set) var bytesSent = 0
    public internal(set) var bytesReceived = 0

    init() {}

    /// Whether both sides of each dataset now hold what both held when it had its turn.
    public var isComplete: Bool { error == nil && datasets.allSatisfy(\.isComplete) }

    /// Of all errors the one to tell of: why the exchange ended early, else that of the first
    /// dataset that has any.
    public var firstError: SyncError? { error ?? datasets.lazy.compactMap(\.error).first }

    /// What was done in each dataset.
    /// - Throws: ``firstError``, if there is any.
    public func results() throws(SyncError) -> [SyncResult] {
        try withoutError().datasets.compactMap(\.result)
    }

    /// - Throws: ``firstError``, if there is any.
    func withoutError() throws(SyncError) -> SyncReport {
        if let firstError { throw firstError }
        return self
    }

    /// What became of a dataset; nil if the exchange did not come to know of it. O(n).
    public subscript(dataset: String) -> DatasetOutcome? {
        datasets.first { $0.dataset == dataset }
    }

    mutating func add(_ outcome: DatasetOutcome) {
        datasets.append(outcome)
        bytesSent += outcome.result?.bytesSent ?? 0
        bytesReceived += outcome.result?.bytesReceived ?? 0
    }

    mutating func add(_ traffic: PeerConnection.Traffic) {
        bytesSent += traffic.sent
        bytesReceived += traffic.received
    }

    /// The same with each error put in another way.
    func mapErrors(_ transform: (SyncError) -> SyncError) -> SyncReport {
        var report = self
        report.error = error.map(transform)
        report.datasets = datasets.map { $0.mapError(transform) }
        return report
    }
}

/// What became of one dataset in an exchange.
public struct DatasetOutcome: Hashable, Sendable {
    public let dataset: String
    /// What was done; with an error, what was done before it, which stays. nil if the dataset did
    /// not have its turn.
    public let result: SyncResult?
    /// Why it was not exchanged, or not whole; nil if nothing went wrong.
    public let error: SyncError?

    /// Whether both sides now hold what both held.
    public var isComplete: Bool { error == nil && result?.isComplete ?? false }

    func mapError(_ transform: (SyncError) -> SyncError) -> DatasetOutcome {
        DatasetOutcome(dataset: dataset, result: result, error: error.map(transform))
    }
}
