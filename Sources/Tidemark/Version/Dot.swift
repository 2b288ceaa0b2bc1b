/// The name of one write: the replica that made it, and how many writes that replica had made
/// to the dataset when it had made this one.
public struct Dot: Hashable, Sendable {
    public let replica: ReplicaID
    /// 1 for the replica's first write to the dataset; never used twice, never 0.
    public let counter: UInt64

    public init(replica: ReplicaID, counter: UInt64) {
        self.replica = replica
        self.counter = counter
    }
}

extension Dot: Comparable {
    /// An arbitrary total order, for stable output. It says nothing about causality.
    public static func < (left: Dot, right: Dot) -> Bool {
        left.replica != right.replica
            ? left.replica < right.replica : left.counter < right.counter
    }
}

extension Dot: CustomStringConvertible {
    /// The first digits of the replica's id, a colon and the counter: `5e1f00aa:42`.
    public var description: String { "\(replica.shortDescription):\(counter)" }
}
