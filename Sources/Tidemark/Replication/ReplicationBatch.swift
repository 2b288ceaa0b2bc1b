/// A run of changes in order, all read at one moment.
package struct ChangesPage: Sendable {
    package let records: [Record]
    /// Everything up to here is in this page or an earlier one, or was left out as known.
    package let through: SyncCount
    /// Whether `through` is the dataset's last count at the moment of reading.
    package let isLast: Bool
    /// Of the same moment.
    package let knowledge: DatasetKnowledge
}

/// One record to be stored as the outcome of a comparison.
package struct ReplicatedWrite: Sendable {
    package enum Content: Sendable {
        /// A peer's version as it is; a nil value is a tombstone. Expires at that time, if any.
        case adopt(value: [UInt8]?, version: Version, expiresAt: UInt64? = nil)
        /// A new local write that descends from the local version and from the one seen.
        case resolve(value: [UInt8]?, seen: Version, expiresAt: UInt64? = nil)
        /// A new local write in place of one whose dot names two writes. It descends from what is
        /// given, and not from all that either version claims to have seen; its time is just after
        /// that of the version, so that it wins where the two meet, or now.
        case rewrite(
            value: [UInt8]?, of: Version, seen: VersionVector, keepsTime: Bool,
            expiresAt: UInt64? = nil)
        /// A version under its own dot, as that of a write which nobody has seen: a new count of
        /// this store is added to its vector, so that it is told to everyone (see ``Outlivers``).
        case outlive(value: [UInt8]?, version: Version, expiresAt: UInt64? = nil)
    }

    package let key: [UInt8]
    package let content: Content
    /// The version that the local record must still have; nil: there must be no record of the
    /// key, not even a tombstone.
    package let expected: Version?
    /// What a new local write descends from at most, besides what its content says; nil: all that
    /// the dataset's vector claims. That claims what an exchange holds apart from the records, too,
    /// which the write need not have met.
    package let claims: VersionVector?

    package init(
        key: [UInt8], content: Content, expected: Version?, claims: VersionVector? = nil
    ) {
        self.key = key
        self.content = content
        self.expected = expected
        self.claims = claims
    }

    /// Whether it is a write of this store's own, with a new dot.
    package var isNew: Bool {
        switch content {
        case .adopt, .outlive: false
        case .resolve, .rewrite: true
        }
    }

    /// The same, claiming no more than that if it is a new write.
    package func claiming(_ most: VersionVector) -> ReplicatedWrite {
        guard isNew else { return self }
        return ReplicatedWrite(key: key, content: content, expected: expected, claims: most)
    }

    package var value: [UInt8]? {
        switch content {
        case .adopt(let value, _, _), .resolve(let value, _, _), .rewrite(let value, _, _, _, _),
            .outlive(let value, _, _):
            value
        }
    }

    var version: Version {
        switch content {
        case .adopt(_, let version, _), .resolve(_, let version, _),
            .rewrite(_, let version, _, _, _), .outlive(_, let version, _):
            version
        }
    }

    package var expiresAt: UInt64? {
        switch content {
        case .adopt(_, _, let expiresAt), .resolve(_, _, let expiresAt),
            .rewrite(_, _, _, _, let expiresAt), .outlive(_, _, let expiresAt):
            expiresAt
        }
    }
}

/// A record that goes from this store and from no other: it is outside of the part that is kept.
package struct LocalDrop: Sendable {
    package let key: [UInt8]
    /// The version that the record must still have.
    package let expected: Version

    package init(key: [UInt8], expected: Version) {
        self.key = key
        self.expected = expected
    }
}

/// What one step of an exchange changes here: in one atomic batch, or not at all.
package struct ReplicationBatch: Sendable {
    package var writes: [ReplicatedWrite] = []
    /// Of other keys than the writes.
    package var drops: [LocalDrop] = []
    /// Stored with the records.
    package var checkpoint: (peer: ReplicaID, PeerCheckpoint)?
    /// Ids, none of them the present one, under which two stores wrote: what was seen of them
    /// counts no more, but for what ``seen`` says.
    package var disowned: [ReplicaID] = []
    /// Of these, whether all that lies here under them was compared with what a peer has, or
    /// written anew. If the peer's vector is joined (``seen``) and has no entry of one of them,
    /// that one goes on counting as in the middle of an exchange: a write descends from the
    /// record that it replaces, and no vector claims anything of it.
    package var isSettled = false
    /// Joined into the dataset's vector: only when everything it covers has been applied.
    package var seen: VersionVector?
    /// A count of this store that names no write, by which what is noted becomes news to everyone.
    /// It must be the next one: if it is not any more, nothing is applied, and an empty key is
    /// named as the one that has moved on.
    package var drawn: Dot?
    /// Deletions that count as forgotten from here on, beside what a meeting brings.
    package var forgotten: ForgottenDeletions?
    /// Who stands behind what comes from a peer.
    package var meeting: Meeting?
    /// At the end of a fresh start: what was written here since the peer was last asked.
    package var outlivers: Outlivers?
    /// Joined into the dataset's lifecycle; what it wipes goes before the writes come.
    package var lifecycle: DatasetLifecycle?
    /// Records of the store's own datasets that stand or fall with the rest.
    package var notes: [SystemNote] = []

    package init() {}
}
