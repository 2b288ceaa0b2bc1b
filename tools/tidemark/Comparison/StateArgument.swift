import ArgumentParser
import Tidemark
import TidemarkSync

/// A state of a dataset on the command line.
enum StateArgument: ExpressibleByArgument, Hashable {
    /// What could be read here then.
    case moment(PastMoment)
    /// What somebody knew who had seen just these writes.
    case vector([WrittenDot])
    /// What a peer was known to have seen when it last exchanged with this store.
    case peer(ReplicaPrefix)

    /// The last write seen of a replica.
    struct WrittenDot: Hashable {
        let replica: ReplicaPrefix
        let counter: UInt64
    }

    static let valueName = "state"
    private static let peerMark = "peer:"

    /// `17`, `2026-11-21T06:30:00Z`, `{1a2b3c4d:7, 5e1f00aa:42}` or `peer:5e1f00aa`.
    init?(argument: String) {
        if argument.hasPrefix(Self.peerMark) {
            let digits = String(argument.dropFirst(Self.peerMark.count))
            guard let peer = ReplicaPrefix(argument: digits) else { return nil }
            self = .peer(peer)
        } else if let moment = MomentArgument(argument: argument) {
            self = .moment(moment.moment)
        } else if let dots = Self.dots(argument) {
            self = .vector(dots)
        } else {
            return nil
        }
    }

    /// As a version vector is printed; the braces and blanks may be left out.
    private static func dots(_ text: String) -> [WrittenDot]? {
        var inner = text[...]
        if inner.hasPrefix("{"), inner.hasSuffix("}") {
            inner = inner.dropFirst().dropLast()
            if inner.isEmpty { return [] }
        }
        var dots: [WrittenDot] = []
        for part in inner.split(separator: ",", omittingEmptySubsequences: false) {
            let halves = part.drop { $0 == " " }.split(
                separator: ":", omittingEmptySubsequences: false)
            guard halves.count == 2, let replica = ReplicaPrefix(argument: String(halves[0])),
                let counter = UInt64(halves[1])
            else { return nil }
            dots.append(WrittenDot(replica: replica, counter: counter))
        }
        return dots
    }

    /// As a version vector of the dataset; nil for a moment.
    func vector(of dataset: Dataset) throws -> VersionVector? {
        switch self {
        case .moment:
            return nil
        case .vector(let dots):
            let known = try dataset.vector.dots.map(\.replica)
            return VersionVector(
                try dots.map { dot in
                    Dot(replica: try dot.replica.replica(among: known), counter: dot.counter)
                })
        case .peer(let prefix):
            let peers = try dataset.peers().filter { !$0.isRetired }
            let replica = try prefix.replica(among: peers.map(\.replica))
            guard let peer = peers.first(where: { $0.replica == replica }) else {
                throw CommandFailure(
                    .negative,
                    "\(replica) is no peer of dataset \"\(dataset.name)\"; see 'tidemark peers'")
            }
            return peer.vector
        }
    }

    /// Whether it means something in one dataset alone.
    var isOfOneDataset: Bool {
        switch self {
        case .moment(.time): false
        case .moment(.syncCount), .vector, .peer: true
        }
    }
}
