import Tidemark

/// Settles the conflicts of one page by the policy, asking a custom one at most once about the same
/// two versions.
struct ConflictSettlement {
    struct Outcome {
        let conflict: Conflict
        let writes: [ReplicatedWrite]
        let settlement: SyncResult.Settlement
        var report: MergeReport?

        /// What the record holds then; nil if it is deleted.
        var value: [UInt8]? { writes.last?.value }

        var expiresAt: UInt64? { writes.last?.expiresAt }
    }

    private struct Question: Hashable {
        let key: [UInt8]
        let local: Version
        let remote: Version
    }

    private let dataset: Dataset
    private let policy: MergePolicy
    private let looksForAncestors: Bool
    private var answers: [Question: CustomAnswer] = [:]

    /// - Parameter looksForAncestors: also where the policy does not ask for them.
    init(dataset: Dataset, policy: MergePolicy, looksForAncestors: Bool) {
        self.dataset = dataset
        self.policy = policy
        self.looksForAncestors = looksForAncestors
    }

    /// What a handler said, of the conflict as it was told of it.
    private struct CustomAnswer {
        let conflict: Conflict
        let resolution: Resolution
        /// What it threw.
        var failure: PendingConflict.Reason?
    }

    /// What is to be stored; the conflict itself if it is left for later.
    enum Answer {
        case settled(Outcome)
        case pending(Conflict, PendingConflict.Reason)
    }

    /// - Parameter mustRewrite: the winner needs a new dot even under last writer wins, because
    ///   the one that it has may name two writes.
    mutating func settle(
        local: Record, remote: Record, mustRewrite: Bool
    ) async throws(SyncError) -> Answer {
        var conflict = Conflict(
            dataset: dataset.name, key: local.key, ancestry: .notKept, local: local,
            remote: remote)
        if case .custom(let handler) = policy {
            let answer = try await answer(of: handler, to: conflict, mustRewrite)
            guard let outcome = answer.conflict.settled(as: answer.resolution) else {
                return .pending(answer.conflict, answer.failure ?? .stopped)
            }
            return .settled(outcome)
        }
        if looksForAncestors || policy.needsAncestor {
            conflict = try withAncestry(conflict, mustRewrite)
        }
        let believed = dataset.store.latestBelieved
        guard let decision = policy.decision(on: conflict, latestBelieved: believed) else {
            return .pending(conflict, .left)
        }
        return .settled(conflict.settled(as: decision, mustRewrite: mustRewrite))
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
    ) async throws(SyncError) -> CustomAnswer {
        let question = Question(
            key: conflict.key, local: conflict.local.version, remote: conflict.remote.version)
        if let answer = answers[question] {
            return answer
        }
        guard !Task.isCancelled else { throw .cancelled() }
        let whole = try withAncestry(conflict, mustRewrite)
        let answer: CustomAnswer
        do {
            answer = CustomAnswer(conflict: whole, resolution: try await handler(whole))
        } catch {
            guard !Task.isCancelled, !(error is CancellationError) else {
                throw .cancelled(dataset: dataset.name)
            }
            answer = CustomAnswer(
                conflict: whole, resolution: .stop, failure: PendingConflict.Reason(error))
        }
        answers[question] = answer
        return answer
    }
}

/// What a policy of this module makes of a conflict, and what was lost by it.
struct PolicyDecision {
    let decision: MergeDecision
    var notes = MergeNotes()
}

extension MergePolicy {
    fileprivate var needsAncestor: Bool {
        switch self {
        case .autoMerge, .leavePending, .custom: true
        case .lastWriterWins, .keepLocal, .keepRemote, .mergeable: false
        }
    }

    /// nil if it is for the application to say.
    ///
    /// - Parameter believed: what is dated after that wins nothing by its date.
    func decision(
        on conflict: Conflict, latestBelieved believed: HybridTime
    ) -> PolicyDecision? {
        switch self {
        case .lastWriterWins:
            let isLocalAhead = conflict.local.version.time > believed
            let isRemoteAhead = conflict.remote.version.time > believed
            guard isLocalAhead != isRemoteAhead else { return PolicyDecision(decision: .later) }
            return PolicyDecision(decision: .keep(isLocalAhead ? .remote : .local))
        case .keepLocal:
            return PolicyDecision(decision: .keep(.local))
        case .keepRemote:
            return PolicyDecision(decision: .keep(.remote))
        case .mergeable:
            let (decision, notes) = MergeableKind.settle(conflict)
            return PolicyDecision(decision: decision, notes: notes)
        case .autoMerge(let rules):
            let (decision, notes) = rules.settle(conflict)
            return PolicyDecision(decision: decision, notes: notes)
        case .leavePending, .custom:
            return nil
        }
    }
}

extension MergePolicy {
    /// What it makes of a conflict outside of an exchange, as a write of its own.
    ///
    /// - Parameter believed: what is dated after that wins nothing by its date.
    func answer(
        to conflict: Conflict, latestBelieved believed: HybridTime
    ) async throws(SyncError) -> ConflictSettlement.Answer {
        guard case .custom(let handler) = self else {
            guard let decision = decision(on: conflict, latestBelieved: believed) else {
                return .pending(conflict, .left)
            }
            return .settled(conflict.settled(as: decision, mustRewrite: true))
        }
        do {
            let resolution = try await handler(conflict)
            guard let outcome = conflict.settled(as: resolution) else {
                return .pending(conflict, .stopped)
            }
            return .settled(outcome)
        } catch {
            guard !Task.isCancelled, !(error is CancellationError) else {
                throw .cancelled(dataset: conflict.dataset)
            }
            return .pending(conflict, PendingConflict.Reason(error))
        }
    }
}

extension Conflict {
    /// - Parameter mustRewrite: the winner needs a new dot even where the last writer wins.
    func settled(
        as decided: PolicyDecision, mustRewrite: Bool
    ) -> ConflictSettlement.Outcome {
        var outcome =
            switch decided.decision {
            case .later: settledByLastWriter(mustRewrite: mustRewrite)
            case .keep(.local): settled(local.value, .local, expiresAt: local.expiresAt)
            case .keep(.remote): settled(remote.value, .remote, expiresAt: remote.expiresAt)
            case .value(let value): settled(value, .merged, expiresAt: mergedExpiry)
            case .delete: settled(nil, .deleted, expiresAt: nil)
            }
        outcome.report = decided.notes.report(on: self)
        return outcome
    }

    /// A new write that descends from both; nil for ``Resolution/stop``.
    func settled(as resolution: Resolution) -> ConflictSettlement.Outcome? {
        switch resolution {
        case .keepLocal: settled(local.value, .local, expiresAt: local.expiresAt)
        case .keepRemote: settled(remote.value, .remote, expiresAt: remote.expiresAt)
        case .value(let merged): settled(merged, .merged, expiresAt: mergedExpiry)
        case .delete: settled(nil, .deleted, expiresAt: nil)
        case .stop: nil
        }
    }

    /// First the other side's version takes its place in the history of the key: it is what the
    /// next change over there will descend from, and so the ancestor of the conflict that this
    /// change may make with ours.
    private func settled(
        _ value: [UInt8]?, _ decision: SyncResult.Settlement.Decision, expiresAt: UInt64?
    ) -> ConflictSettlement.Outcome {
        let contents: [ReplicatedWrite.Content] = [
            .adopt(value: remote.value, version: remote.version, expiresAt: remote.expiresAt),
            .resolve(value: value, seen: remote.version, expiresAt: expiresAt),
        ]
        return ConflictSettlement.Outcome(
            conflict: self,
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
            conflict: self,
            writes: [ReplicatedWrite(key: key, content: content, expected: local.version)],
            settlement: SyncResult.Settlement(key: key, decision: isRemote ? .remote : .local))
    }
}

extension Dataset {
    /// What is known of the version that both sides of a conflict descend from.
    func ancestry(
        of key: [UInt8], local: Version, remote: Version
    ) throws(StoreError) -> Conflict.Ancestry {
        do throws(StoreError) {
            return try keptAncestry(of: key, local: local, remote: remote)
        } catch {
            // Tombstones outlive the dataset, and may meet a record; its history does not.
            guard error.code == .datasetNotFound else { throw error }
            return .notKept
        }
    }

    private func keptAncestry(
        of key: [UInt8], local: Version, remote: Version
    ) throws(StoreError) -> Conflict.Ancestry {
        if let ancestor = try ancestor(of: key, local: local, remote: remote) {
            // After a fork the other side may have seen another write under its dot.
            let writer = ancestor.version.dot.replica
            guard store.formerReplicaIDs.contains(writer),
                try BatonBook(self).wasDisputed(writer)
            else { return .known(ancestor) }
            return .notKept
        }
        let haveSeenTheSame = local.vector.dots.contains { remote.vector[$0.replica] > 0 }
        guard haveSeenTheSame else { return .nonexistent }
        // Where every version is kept, and ours is the only one of the key and was written here,
        // nothing of the key was here when it was written; so it descends from nothing. One that
        // was written under a former id may have come back after its ancestors were lost.
        guard local.dot.replica == store.replicaID, try historyStart().syncCount == .zero,
            try storedVersions(of: key, limit: 2).count == 1
        else { return .notKept }
        return .nonexistent
    }
}

extension SyncError {
    static func unsettled(_ key: [UInt8], _ reason: PendingConflict.Reason) -> SyncError {
        SyncError(
            .conflictPending,
            "a conflict is not settled: \(reason); nothing was pushed; settle it and repeat",
            key: key)
    }
}
