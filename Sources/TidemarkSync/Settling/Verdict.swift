import Tidemark

// What becomes of a version that arrives, beside what is here of its key: the one place where that
// is decided. A pure function of the two versions and of what both sides know; whoever calls it
// finds that out before, and does what the verdict says after.
//
// Who calls it:
//                                  seen        doubts      deletions not met   dates ahead
//   who pulls a whole dataset      its vector  both sides  of a late peer      held
//   who pulls a part               nothing     none        none                taken
//   who is pushed to               its vector  its own     of a part           held
//   who lets in what was held      nothing     none        what came since     due
//
// A whole page is compared by the same rules in the store (`PageComparison`), without making
// records, where nothing is in doubt, late or ahead.

/// What is known when a version arrives, beside the two versions. All of one moment.
struct Circumstances {
    /// What the dataset has seen: of that, what is not here is gone. Empty where only the versions
    /// themselves speak.
    var seen: VersionVector
    /// What was deleted with the whole dataset.
    var wiped: VersionVector
    var side = Side.alone
    /// Deletions that changes may not tell of; nil if there are none.
    var unmet: UnmetDeletions?
    /// Whether it is dated further ahead than is believed, and is news.
    var isAhead = false

    enum Side {
        /// Asks, and settles what is in doubt on either side.
        case asking(Doubts)
        /// Is asked, and leaves what is in doubt to the asker. With the disputed ids here.
        case asked(disputed: [ReplicaID])
        /// Keeps a part: nothing here is in doubt.
        case part
        case alone
    }
}

/// Deletions that were forgotten here, of whose key there is nothing here now.
struct UnmetDeletions {
    /// Without what is held of the key, which was not deleted.
    let forgotten: ForgottenDeletions
    /// What is known here.
    let ours: PeerKnowledge
    /// Whether the version itself is held, so that it was seen and is not dead.
    let isHeld: Bool
    let latestBelieved: HybridTime
}

struct Verdict {
    enum Outcome {
        /// What is here says all of it.
        case ignore
        /// Stored as it came, or joined with what is here. `isTheirs`: whether what stands then is
        /// what arrived.
        case adopt(ReplicatedWrite, isTheirs: Bool)
        /// Written anew, because it wins where nobody else could see that it does.
        case renew(ReplicatedWrite, isTheirs: Bool)
        /// What arrived was buried here under its own dot; the deletion is written anew, so that
        /// the peer hears of it.
        case rebury(ReplicatedWrite)
        /// What arrived is written anew, above what was forgotten here and what it has not seen.
        case outlive(ReplicatedWrite)
        /// A conflict for the policy. What it settles descends from both versions, or from just
        /// what is given.
        case settle(seen: VersionVector?)
        /// What is here stays as it is, and so does what the peer has.
        case confirmed
        /// It was seen, deleted, and the deletion forgotten.
        case dead
        /// Kept apart until its date has come; if it cannot be, it is taken as any.
        indirect case hold(otherwise: Outcome)
    }

    let outcome: Outcome
    /// Whether anything of what arrived may be stored, so that it has to be let pass before.
    let isNews: Bool

    /// - Parameter local: what is here, a tombstone included.
    init(on incoming: Record, beside local: Record?, _ circumstances: Circumstances) {
        if case .part = circumstances.side, let local, local.isBuried(by: incoming) {
            let version = local.version.joined(with: incoming.version.vector)
            outcome = .adopt(
                ReplicatedWrite(
                    key: incoming.key, content: .adopt(value: nil, version: version),
                    expected: local.version), isTheirs: true)
            isNews = false
            return
        }
        let comparison = Comparison(
            local: local, incoming: incoming, seen: circumstances.seen, wiped: circumstances.wiped)
        let judged = circumstances.judged(incoming, beside: local, comparison)
        if case .dead? = judged {
            (outcome, isNews) = (.dead, false)
            return
        }
        let isAhead = circumstances.holds(incoming, beside: local)
        isNews = comparison != .ignore || isAhead || judged != nil
        let taken = judged ?? circumstances.outcome(comparison, incoming, beside: local)
        outcome = isAhead ? .hold(otherwise: taken) : taken
    }
}

extension Verdict.Outcome {
    /// What is stored where nobody has to be asked; nothing for a conflict.
    var writes: [ReplicatedWrite] {
        switch self {
        case .adopt(let write, _), .renew(let write, _), .outlive(let write), .rebury(let write):
            [write]
        case .ignore, .settle, .confirmed, .dead, .hold: []
        }
    }

    /// Of two versions of which nobody can tell whether one descends from the other.
    ///
    /// - Parameter seen: what either of the two has seen for certain.
    static func between(_ local: Record, _ incoming: Record, seen: VersionVector) -> Self {
        guard incoming.value == local.value, incoming.expiresAt == local.expiresAt else {
            return .settle(seen: seen)
        }
        // As late as the later one, or what was written between the two would win over it.
        let isTheirs = incoming.version.time > local.version.time
        let later = isTheirs ? incoming : local
        return .renew(
            later.rewritten(seen: seen, over: local.version), isTheirs: isTheirs)
    }
}

extension Circumstances {
    /// What becomes of a version of whose key there is nothing here but what was forgotten; nil if
    /// it is compared as any.
    fileprivate func judged(
        _ incoming: Record, beside local: Record?, _ comparison: Comparison
    ) -> Verdict.Outcome? {
        let version = incoming.version
        guard let unmet, !wiped.covers(version.vector) else { return nil }
        var (isShared, isDoubted, seen) = (true, false, version.vector)
        switch side {
        case .asking(let doubts):
            // Under a disputed id it may be another write than the one that was seen here.
            isShared = !doubts.theirs.contains(version.dot.replica) || doubts.weHad(incoming)
            (isDoubted, seen) = (doubts.contain(version.dot), doubts.stripped(incoming))
        case .alone:
            // That it was seen is why it was held.
            guard comparison != .ignore else { return nil }
            isShared = false
        case .asked, .part: break
        }
        if isShared, unmet.ours.hasSeen(version.dot, unmet.ours.vector) {
            return unmet.isHeld ? nil : .dead
        }
        guard !version.vector.covers(unmet.forgotten.vector) else { return nil }
        let content = Outlivers.content(
            value: incoming.value, of: version, seen: seen, expiresAt: incoming.expiresAt,
            after: unmet.forgotten, latestBelieved: unmet.latestBelieved, isDoubted: isDoubted)
        return .outlive(
            ReplicatedWrite(key: incoming.key, content: content, expected: local?.version))
    }

    /// If it, or what is here of its key, has a dot that may name another write, it is compared as
    /// it comes, whatever its date: only that settles what is in doubt.
    fileprivate func holds(_ incoming: Record, beside local: Record?) -> Bool {
        guard isAhead else { return false }
        let isInDoubt: (Dot) -> Bool = { dot in
            switch side {
            case .asking(let doubts): doubts.contain(dot)
            case .asked(let disputed): disputed.contains(dot.replica)
            case .part, .alone: false
            }
        }
        let isLocalInDoubt = local.map { !$0.isDropped && isInDoubt($0.version.dot) } ?? false
        return !isLocalInDoubt && !isInDoubt(incoming.version.dot)
    }

    fileprivate func outcome(
        _ comparison: Comparison, _ incoming: Record, beside local: Record?
    ) -> Verdict.Outcome {
        if case .asking(let doubts) = side, !wiped.covers(incoming.version.vector),
            let finding = doubts.finding(on: incoming, beside: local)
        {
            switch finding {
            case .confirmed: return .confirmed
            case .decided(let outcome): return outcome
            case .superseded: break
            }
        }
        switch comparison {
        case .ignore:
            return .ignore
        case .conflict:
            return .settle(seen: nil)
        case .renew(let winner):
            if let local, local.isBuried(ahead: incoming) {
                return .rebury(
                    local.rewritten(seen: incoming.version.vector, over: local.version))
            }
            return .renew(
                Comparison.renewal(of: winner, incoming: incoming, local: local),
                isTheirs: winner.version == incoming.version)
        case .adopt(let value, var version, let expiresAt):
            if case .asked(let disputed) = side {
                version = version.certain(as: incoming, over: local, disputed)
            }
            return .adopt(
                ReplicatedWrite(
                    key: incoming.key,
                    content: .adopt(value: value, version: version, expiresAt: expiresAt),
                    expected: local?.version), isTheirs: version.dot != local?.version.dot)
        }
    }
}

extension Version {
    /// What is stored of a version of the asker's that takes the place of one under a disputed dot
    /// because both have the same value: without that dot, which may name another write. Joined
    /// with it, it would seem to descend from that one.
    fileprivate func certain(
        as incoming: Record, over local: Record?, _ disputed: [ReplicaID]
    ) -> Version {
        guard let local, !local.isDropped, disputed.contains(local.version.dot.replica),
            dot == incoming.version.dot,
            !incoming.version.vector.contains(local.version.dot)
        else { return self }
        let sure = disputed.reduce(local.version.vector) { $0.removing($1) }
        return Version(
            dot: dot, vector: incoming.version.vector.union(sure), time: time, author: author)
    }
}

extension Record {
    /// Whether it is dead by a tombstone under its own version. One that has expired is not: every
    /// replica sees that by itself.
    fileprivate func isBuried(by other: Record) -> Bool {
        !isDropped && !isDeleted && other.isDeleted && other.expiresAt == nil
            && other.version.dot == version.dot
    }
}
