/// Which write made a record what it is, and what that write had seen.
///
/// Versions of one key are ordered by ancestry: a version descends from another if its vector
/// contains the other's dot. Two versions neither of which descends from the other are concurrent,
/// and a merge policy decides; time never makes an ancestor.
public struct Version: Hashable, Sendable {
    /// The write itself.
    public let dot: Dot
    /// What the writer had seen of the dataset, the write itself included.
    public let vector: VersionVector
    /// When, by the writer's hybrid clock; later than every version of the key it had seen, but for
    /// such as were dated further ahead than ``StoreOptions/clockAheadMax``.
    public let time: HybridTime
    /// On whose behalf, as the writing application named it; empty if it did not.
    /// At most ``Limits/authorBytesMax`` bytes of UTF-8.
    public let author: String

    public init(dot: Dot, vector: VersionVector, time: HybridTime, author: String = "") {
        self.dot = dot
        var whole = vector
        whole.insert(dot)
        self.vector = whole
        self.time = time
        self.author = author
    }

    /// How this version stands to another one of the same key.
    ///
    /// Each of two may have been joined with something that had seen the other. That takes a clock
    /// that was not believed: whoever overwrites a write from the future is dated before it. Then
    /// the earlier one counts as the descendant, whichever side asks.
    public func relation(to other: Version) -> VersionRelation {
        if dot == other.dot { return .same }
        switch (vector.contains(other.dot), other.vector.contains(dot)) {
        case (true, true): return isLater(than: other) ? .ancestor : .descendant
        case (true, false): return .descendant
        case (false, true): return .ancestor
        case (false, false): return .concurrent
        }
    }

    /// Whether this version may take the place of one that it descends from under its own dot.
    ///
    /// Not if it is the earlier one and has not seen all that the other had been joined with. Then
    /// the outcome would depend on the order of arrivals, and nobody would tell the others, for
    /// whom all of it is known: the descendant wins, but as a new write.
    package func supersedesAsItIs(_ other: Version) -> Bool {
        isLater(than: other) || vector.covers(other.vector)
    }

    /// Whether each of two versions has seen the other, and the later one has outlived something.
    /// What that one has seen it need not have known: see `Outlivers`. So neither is known to
    /// descend from the other, unless one has seen all that the other has.
    package func isInDispute(with other: Version) -> Bool {
        dot != other.dot && max(time, other.time).isOutliving && vector.contains(other.dot)
            && other.vector.contains(dot)
    }

    /// The order by which last writer wins: time, then replica, then counter. Total, so that every
    /// replica picks the same winner.
    public func isLater(than other: Version) -> Bool {
        if time != other.time { return time > other.time }
        return dot > other.dot
    }
}

/// How one version of a key stands to another.
public enum VersionRelation: Hashable, Sendable {
    /// Both are the same write.
    case same
    /// The first was written by someone who had seen the second.
    case descendant
    /// The second was written by someone who had seen the first.
    case ancestor
    /// Neither writer had seen the other's write: a conflict.
    case concurrent
}
