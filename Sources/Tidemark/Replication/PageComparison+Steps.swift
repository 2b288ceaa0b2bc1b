extension PageComparison {
    /// What becomes of a record of the page.
    enum Step: UInt8 {
        case ignore
        /// Stored as it came.
        case takeIncoming
        /// The incoming value under a joined version.
        case takeJoined
        /// The value that is here under a joined version.
        case keepJoined
    }

    struct Decision {
        var step: Step
        /// In ``merges``.
        var merge: UInt32 = 0
    }

    /// What is more than taking over a record.
    struct Merge {
        /// Of the version to be stored under.
        let dot: Dot
        let time: HybridTime
        let author: String
        /// As it is stored, without what the dot says itself.
        var vector: VersionVector
        /// Which merges of the page have one replica, vector and author: see ``shareVectors()``.
        var group: Int?
        /// What is here, where that stays. Copied, because nothing may fail any more once a part
        /// of the page is in the log, and reading can.
        var kind = EntryKind.put
        /// In ``kept``.
        var value = 0..<0
        var expiresAt: UInt64 = 0
    }
}

extension PageComparison.Merge {
    init(_ version: Version) {
        self.init(
            dot: version.dot, time: version.time, author: version.author,
            vector: version.storedVector)
    }
}
