// Two replicas that exchange a dataset may each have forgotten deletions that the other has never
// heard of. Whoever lacks one is late: it may hold a record that is dead, and write on what it does
// not know to be deleted. So before anything of a page is applied, and under the same lock, it is
// asked whether either side is late by what the other has forgotten until then: compaction goes on
// during an exchange, and what was true at the greeting may be so no more.
//
// For it to be safe to take a page in the usual way, this must hold for each key: the version that
// is here has seen every write to the key that the dataset has seen, or there is none and all these
// writes are among what was forgotten. Both sides keep it, and so does what comes of the page, if
// neither is late.

/// Who stands behind a page that is to be applied, as of the moment at which it was read.
package struct Meeting: Sendable {
    /// What the sender had seen.
    package var vector: VersionVector
    package var forgotten: ForgottenDeletions
    /// Forgotten deletions with which all that lies here was compared in this exchange.
    package var settled = VersionVector()
    /// In our order of change: what came later was not, unless it has seen what was forgotten.
    /// nil if nothing can have come that was not.
    package var settledThrough: SyncCount?
    /// Whether the records of a late sender were judged one by one before they came here.
    package var isJudged = false

    package init(vector: VersionVector, forgotten: ForgottenDeletions) {
        self.vector = vector
        self.forgotten = forgotten
    }
}

/// What was written here in the last moment of a fresh start: too late for the peer to be asked,
/// and so late that it cannot have seen it. By then all that the peer holds is here, too.
package struct Outlivers: Sendable {
    /// In our order of change: what came up to here was settled.
    package let since: SyncCount
    /// What the peer has forgotten.
    package let forgotten: ForgottenDeletions
    /// By their keys, writes that are held because of their date, by now or from then on.
    package let unread: [[UInt8]: [Dot]]

    package init(
        since: SyncCount, forgotten: ForgottenDeletions, unread: [[UInt8]: [Dot]] = [:]
    ) {
        self.since = since
        self.forgotten = forgotten
        self.unread = unread
    }

    /// What a record of the key is to have seen: see ``ForgottenDeletions/before(_:)``.
    func forgotten(of key: [UInt8]) -> ForgottenDeletions { forgotten.before(unread[key] ?? []) }

    /// A record that has seen all that was forgotten, and is later than that. It keeps its dot:
    /// whoever has seen that write and went on from it, or deleted it, wins over it wherever they
    /// meet, which under a new dot nobody could know.
    ///
    /// - Parameters:
    ///   - seen: what the record had seen.
    ///   - latestBelieved: of this store. By a later date nothing else must be dated: then the
    ///     record keeps its own. It stands above what it has seen all the same.
    ///   - isDoubted: whether the dot may name another write, too: then it gets a new one.
    package static func content(
        value: [UInt8]?, of version: Version, seen: VersionVector, expiresAt: UInt64?,
        after forgotten: ForgottenDeletions, latestBelieved: HybridTime, isDoubted: Bool = false
    ) -> ReplicatedWrite.Content {
        let time = max(version.time, forgotten.believed(until: latestBelieved).time)
        let whole = seen.union(forgotten.vector)
        guard isDoubted else {
            return .outlive(
                value: value,
                version: Version(
                    dot: version.dot, vector: whole, time: .outliving(time),
                    author: version.author),
                expiresAt: expiresAt)
        }
        let later = Version(
            dot: version.dot, vector: version.vector, time: time, author: version.author)
        return .rewrite(
            value: value, of: later, seen: whole, keepsTime: true, expiresAt: expiresAt)
    }
}

extension HybridTime {
    /// The time of what outlives everything up to a time: the end of that millisecond, which no
    /// clock gives out unless 65,535 writes were made in it.
    package static func outliving(_ time: HybridTime) -> HybridTime {
        let end = HybridTime(milliseconds: time.milliseconds, counter: .max)
        return end > time ? end : HybridTime(milliseconds: time.milliseconds + 1, counter: .max)
    }

    /// Whether a version of that time has outlived something. Then what it has seen says what it
    /// stands above, and not what its writer knew.
    package var isOutliving: Bool { counter == .max }
}

extension Meeting {
    /// Whether it can be written down.
    var isStorable: Bool {
        vector.isCountable && settled.isCountable && forgotten.isStorable
    }
}

extension ForgottenDeletions {
    /// What a record may claim to have seen that outlives them: nothing of these writes, which are
    /// held of its key. The deletions had seen all that their datasets had, and so the vector
    /// claims what nobody has read, if that came here before the deletions of other keys were
    /// forgotten.
    package func before(_ held: [Dot]) -> ForgottenDeletions {
        held.isEmpty ? self : ForgottenDeletions(vector: vector.before(held), time: time)
    }

    var isStorable: Bool { vector.isCountable && time.rawValue < UInt64(Int64.max) }

    /// The same without a date that is not believed.
    func believed(until latest: HybridTime) -> ForgottenDeletions {
        time > latest ? ForgottenDeletions(vector: vector) : self
    }
}
