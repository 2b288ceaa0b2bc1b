import Tidemark

/// Settles the conflicts of one page by the policy, asking a custom one at most once about the same
/// two versions.
struct ConflictSettlement {
    struct Outcome {
        let writes: [ReplicatedWrite]
        let settlement: SyncResult.Settlement
        var report: MergeReport?
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

    /// What is to be stored; the conflict itself if it is left for later.
    enum Answer {
        case settled(Outcome)
        case pending(Conflict)
    }

    /// - Parameter mustRewrite: the winner needs a new dot even under last writer wins, because
    ///   the one that it has may name two writes.
    mutating func settle(
        local: Record, remote: Record, mustRewrite: Bool
    ) async throws(SyncError) -> Answer {
        var conflict = Conflict(
            dataset: dataset.name, key: local.key, ancestry: .notKept, local: local,
            remote: remote)
        switch policy {
        case .lastWriterWins:
            return .settled(conflict.settledByLastWriter(mustRewrite: mustRewrite))
        case .keepLocal:
            return .settled(try settled(conflict, as: .keepLocal))
        case .keepRemote:
            return .settled(try settled(conflict, as: .keepRemote))
        case .mergeable:
            let (decision, notes) = MergeableKind.settle(conflict)
            return .settled(try settled(conflict, as: decision, notes, mustRewrite))
        case .autoMerge(let rules):
            conflict = try withAncestry(conflict, mustRewrite)
            let (decision, notes) = rules.settle(conflict)
            return .settled(try settled(conflict, as: decision, notes, mustRewrite))
        case .leavePending:
            return .pending(try withAncestry(conflict, mustRewrite))
        case .custom(let handler):
            let answer = try await answer(of: handler, to: conflict, mustRewrite)
            return .settled(try settled(conflict, as: answer))
        }
    }

    /// - Parameter mustRewrite: dots of the key name two writes, so a version that both seem to
    ///   descend from may be an ancestor of one alone.
    private func withAncestry(
        _ conflict: Conflict, _ mustRewrite: Bool
    ) throws(SyncError) -> Conflict {
        guard !mustRewrite else { return conflict }
        let ancestry = try engine(dataset.name) { () throws(StoreError) in
            try dataset.ancestry(
                of: conflict.key, local: conflict.local.version, remote: conflict.remote.version)
        }
        return Conflict(
            dataset: conflict.dataset, key: conflict.key, ancestry: ancestry,
            local: conflict.local, remote: conflict.remote)
    }

    private mutating func answer(
        of handler: @Sendable (Conflict) async throws -> Resolution, to conflict: Conflict,
        _ mustRewrite: Bool
    ) async throws(SyncError) -> Resolution {
        let question = Question(
            key: conflict.key, local: conflict.local.version, remote: conflict.remote.version)
        if let answer = answers[question] {
            return answer
        }
        guard !Task.isCancelled else { throw .cancelled() }
        let whole = try withAncestry(conflict, mustRewrite)
        let answer: Resolution
        do {
            answer = try await handler(whole)
        } catch {
            guard !Task.isCancelled, !(error is CancellationError) else {
                throw .cancelled(dataset: dataset.name)
            }
            throw .unsettled(conflict.key, "the merge policy failed with \"\(error)\"")
        }
        answers[question] = answer
        return answer
    }

    private func settled(
        _ conflict: Conflict, as resolution: Resolution
    ) throws(SyncError) -> Outcome {
        guard let outcome = conflict.settled(as: resolution) else {
            throw .unsettled(conflict.key, "the merge policy left it undecided")
        }
        return outcome
    }

    private func settled(
        _ conflict: Conflict, as decision: MergeDecision, _ notes: MergeNotes, _ mustRewrite: Bool
    ) throws(SyncError) -> Outcome {
        var outcome =
            switch decision {
            case .later: conflict.settledByLastWriter(mustRewrite: mustRewrite)
            case .keep(.local): try settled(conflict, as: .keepLocal)
            case .keep(.remote): try settled(conflict, as: .keepRemote)
            case .value(let value): try settled(conflict, as: .value(value))
            case .delete: try settled(conflict, as: .delete)
            }
        outcome.report = notes.report(on: conflict)
        return outcome
    }
}

extension Conflict {
    /// A new write that descends from both; nil for ``Resolution/stop``.
    ///
    /// First the other side's version takes its place in the history of the key: it is what the
    /// next change over there will descend from, and so the ancestor of the conflict that this
    /// change may make with ours.
    func settled(as resolution: Resolution) -> ConflictSettlement.Outcome? {
        let value: [UInt8]?
        let decision: SyncResult.Settlement.Decision
        let expiresAt: UInt64?
        switch resolution {
        case .keepLocal: (value, decision, expiresAt) = (local.value, .local, local.expiresAt)
        case .keepRemote: (value, decision, expiresAt) = (remote.value, .remote, remote.expiresAt)
        case .value(let merged): (value, decision, expiresAt) = (merged, .merged, mergedExpiry)
        case .delete: (value, decision, expiresAt) = (nil, .deleted, nil)
        case .stop: return nil
        }
        let contents: [ReplicatedWrite.Content] = [
            .adopt(value: remote.value, version: remote.version, expiresAt: remote.expiresAt),
            .resolve(value: value, seen: remote.version, expiresAt: expiresAt),
        ]
        return ConflictSettlement.Outcome(
            writes: contents.map {
                ReplicatedWrite(key: key, content: $0, expected: local.version)
            },
            settlement: SyncResult.Settlement(key: key, decision: decision))
    }

    /// The later version with its own dot, unless that may name two writes.
    func settledByLastWriter(mustRewrite: Bool) -> ConflictSettlement.Outcome {
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
        return ConflictSettlement.Outcome(
            writes: [ReplicatedWrite(key: key, content: content, expected: local.version)],
            settlement: SyncResult.Settlement(key: key, decision: isRemote ? .remote : .local))
    }
}

extension Dataset {
    /// What is known of the version that both sides of a conflict descend from.
    func ancestry(
        of key: [UInt8], local: Version, remote: Version
    ) throws(StoreError) -> Conflict.Ancestry {
        if let ancestor = try ancestor(of: key, local: local, remote: remote) {
            return .known(ancestor)
        }
        let haveSeenTheSame = local.vector.dots.contains { remote.vector[$0.replica] > 0 }
        guard haveSeenTheSame else { return .nonexistent }
        // Where every version is kept, and ours is the only one of the key and was written here,
        // nothing of the key was here when it was written; so it descends from nothing. One that
        // was written under a former id may have come back after its ancestors were lost.
        guard local.dot.replica == store.replicaID, try historyStart().syncCount == .zero,
            try history(of: key, limit: 2).count == 1
        else { return .notKept }
        return .nonexistent
    }
}

extension SyncError {
    static func unsettled(_ key: [UInt8], _ reason: String) -> SyncError {
        SyncError(
            .conflictPending,
            "a conflict is not settled: \(reason); nothing was pushed; settle it and repeat",
            key: key)
    }
}
