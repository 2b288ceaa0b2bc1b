import ArgumentParser
import Tidemark

/// A replica on the command line: at least the first digits of its id, as tables show them.
struct ReplicaPrefix: ExpressibleByArgument, Hashable {
    static let digitCounts = 8...32

    let digits: String

    init?(argument: String) {
        guard Self.digitCounts.contains(argument.utf8.count),
            argument.utf8.allSatisfy({ Self.isDigit($0) })
        else { return nil }
        digits = argument
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    func matches(_ replica: ReplicaID) -> Bool { replica.description.hasPrefix(digits) }

    /// The one that is meant; a whole id need not be among those that are known.
    func replica(among known: some Sequence<ReplicaID>) throws -> ReplicaID {
        if let whole = ReplicaID(digits) { return whole }
        let found = Set(known.filter { matches($0) })
        guard let replica = found.first else {
            throw CommandFailure(
                .negative, "no replica \(digits) is known here; see 'tidemark peers'")
        }
        guard found.count == 1 else {
            throw CommandFailure(
                .usage, "\(digits) names \(found.count) replicas; give more of the id's digits")
        }
        return replica
    }
}
