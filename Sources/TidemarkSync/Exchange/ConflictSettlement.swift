import Tidemark

/// Settles the conflicts of one page by the policy, asking a custom one at most once about the same
/// two versions.
struct ConflictSettlement {
    struct Outcome {
        let write: ReplicatedWrite
        let settlement: SyncResult.Settlement
    }

    private struct Question: Hashable {
        let key: [UInt8]
        let local: Version
        let remote: Version
    }

    private let dataset: Dataset
    private let policy: MergePolicy
    private var answers: [Question: Resolution] = [:]

    init(dataset: Dataset, policy: MergePolicy) {
        self.dataset = dataset
        self.policy = policy
    }

    /// - Parameter mustRewrite: the winner needs a new dot even under last writer wins, because
    ///   the one that it has may name two writes.
    mutating func settle(
        local: Record, remote: Record, mustRewrite: Bool
    ) async throws(SyncError) -> Outcome {
        if case .lastWriterWins = policy {
            return lastWriter(local: local, remote: remote, mustRewrite: mustRewrite)
        }
        let resolution = try await resolution(local: local, remote: remote)
        let value: [UInt8]?
        let decision: SyncResult.Settlement.Decision
        let expiresAt: UInt64?
        switch resolution {
        case .keepLocal: (value, decision, expiresAt) = (local.value, .local, local.expiresAt)
        case .keepRemote: (value, decision, expiresAt) = (remote.value, .remote, remote.expiresAt)
        case .value(let merged):
            (value, decision, expiresAt) = (merged, .merged, Self.laterExpiry(local, remote))
        case .delete: (value, decision, expiresAt) = (nil, .deleted, nil)
        case .stop: throw Self.stopped(remote.key, "the merge policy left it undecided")
        }
        return Outcome(
            write: ReplicatedWrite(
                key: local.key,
                content: .resolve(value: value, seen: remote.version, expiresAt: expiresAt),
                expected: local.version),
            settlement: SyncResult.Settlement(key: local.key, decision: decision))
    }

    /// What was merged of two records expires when both have, and never if one never does.
    private static func laterExpiry(_ local: Record, _ remote: Record) -> UInt64? {
        guard let ours = local.expiresAt, let theirs = remote.expiresAt else { return nil }
        return max(ours, theirs)
    }

    private func lastWriter(local: Record, remote: Record, mustRewrite: Bool) -> Outcome {
        let isRemote = remote.version.isLater(than: local.version)
        let winner = isRemote ? remote : local
        var content = ReplicatedWrite.Content.resolve(
            value: winner.value, seen: remote.version, expiresAt: winner.expiresAt)
        if !mustRewrite {
            let version = Version(
                dot: winner.version.dot,
                vector: local.version.vector.union(remote.version.vector),
                time: winner.version.time, author: winner.version.author)
            content = .adopt(
                value: winner.value, version: version, expiresAt: winner.expiresAt)
        }
        return Outcome(
            write: ReplicatedWrite(key: local.key, content: content, expected: local.version),
            settlement: SyncResult.Settlement(
                key: local.key, decision: isRemote ? .remote : .local))
    }

    private mutating func resolution(
        local: Record, remote: Record
    ) async throws(SyncError) -> Resolution {
        guard case .custom(let handler) = policy else {
            if case .keepRemote = policy { return .keepRemote }
            return .keepLocal
        }
        let question = Question(key: local.key, local: local.version, remote: remote.version)
        if let answer = answers[question] {
            return answer
        }
        guard !Task.isCancelled else { throw .cancelled() }
        let ancestor = try engine(dataset.name) { () throws(StoreError) in
            try dataset.ancestor(of: local.key, local: local.version, remote: remote.version)
        }
        let conflict = Conflict(
            dataset: dataset.name, key: local.key, ancestor: ancestor, local: local,
            remote: remote)
        let answer: Resolution
        do {
            answer = try await handler(conflict)
        } catch {
            guard !Task.isCancelled, !(error is CancellationError) else {
                throw .cancelled(dataset: dataset.name)
            }
            throw Self.stopped(local.key, "the merge policy failed with \"\(error)\"")
        }
        answers[question] = answer
        return answer
    }

    private static func stopped(_ key: [UInt8], _ reason: String) -> SyncError {
        SyncError(
            .conflictPending,
            "a conflict is not settled: \(reason); nothing was pushed; settle it and repeat",
            key: key)
    }
}
