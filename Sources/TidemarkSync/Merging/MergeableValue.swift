public import Tidemark

/// A value that can be changed on several replicas at once and merged without loss: a conflict-free
/// replicated data type (Shapiro, Preguiça, Baquero, Zawirski: "Conflict-Free Replicated Data
/// Types", 2011), held as the bytes of a record.
///
/// ``merge(_:)`` is a join: commutative, associative and idempotent. So replicas that have seen the
/// same changes hold the same, whatever the order, repetition or detours, and the same merge made
/// on two replicas gives the same bytes.
///
/// Change one by way of `Dataset.update`, and settle conflicts by ``MergePolicy/mergeable``:
///
/// ```swift
/// try dataset.update("visits", as: Counter.self) { visits, turn in visits.add(1, turn) }
/// try await dataset.synchronize(with: hub, options: SyncOptions(policy: .mergeable))
/// ```
///
/// A type of one's own is merged with ``MergePolicy/merging(_:)``.
public protocol MergeableValue: Hashable, Sendable {
    /// The value before its first change.
    ///
    /// - Parameter turn: who makes it, and when.
    init(_ turn: MergeTurn)

    /// Takes back what ``encoded`` gave.
    ///
    /// - Throws: ``MergeableError`` for every other bytes; they may come from anywhere.
    init(decoding bytes: [UInt8]) throws(MergeableError)

    /// The same bytes for the same value, everywhere and in every later version.
    var encoded: [UInt8] { get }

    /// Takes in what another replica has made of the value.
    mutating func merge(_ other: Self)
}

/// Why bytes are not the mergeable value that they are read as.
public struct MergeableError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in words.
    public let problem: String

    public init(_ problem: String) {
        self.problem = problem
    }

    public var description: String {
        "\(problem); read the record as what it was written as, or put it anew"
    }
}

/// Who changes a mergeable value, and when. A store gives one out for each change.
///
/// Who it is: not the replica but one *opening* of its store. A store that was put back from a copy
/// goes on under the id that it had, until it meets somebody who knows better; what it counts until
/// then would be counted under a name that already stands for something else. An opening after the
/// copy has a name of its own.
public struct MergeTurn: Hashable, Sendable {
    /// Drawn when the store was opened.
    public let opening: UInt64
    /// Later than everything that the store has seen.
    public let time: HybridTime

    public init(opening: UInt64, time: HybridTime) {
        self.opening = opening
        self.time = time
    }

    /// The name under which the turn's opening changes a value that came to be at that time.
    ///
    /// If the value was deleted and made anew, the changes from before must not be confused with
    /// those since: another replica may not know of the deletion, and still has the former.
    func contributor(since birth: HybridTime) -> UInt64 {
        // The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection, so that openings
        // which differ stay different.
        var mixed = birth.rawValue &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return opening ^ mixed ^ (mixed >> 31)
    }
}

/// The bounds of mergeable values, each with its reason.
public enum MergeableLimits {
    /// Bytes of a value: each change writes all of it, so larger ones belong in several records. As
    /// a value it takes up to forty times as much memory, and a merge holds two.
    public static let bytesMax = 4 << 20
    /// Bytes of an element of a set, of a field's name or value, or of a maximum: as for a key.
    public static let elementBytesMax = 65_535
}
