package import TestSupport
package import Tidemark

/// Who exchanges with whom. In the middle of a star is a hub, number 0, which never asks.
package enum SimulatedTopology: String, Hashable, Sendable, CaseIterable {
    case mesh, star, ring, chain

    package func edges(_ count: Int) -> [(Int, Int)] {
        switch self {
        case .mesh: (0..<count).flatMap { a in ((a + 1)..<count).map { (a, $0) } }
        case .star: (1..<count).map { ($0, 0) }
        case .ring: (0..<count).map { ($0, ($0 + 1) % count) }
        case .chain: (1..<count).map { ($0 - 1, $0) }
        }
    }
}

/// How conflicts are settled in a run, in a form that the model knows.
package enum SimulatedPolicy: String, Hashable, Sendable, CaseIterable {
    case lastWriterWins, union, keepLocal, keepRemote
}

/// Schedules of these kinds are drawn only on request: they break what the protocol does not yet
/// guard against, or leave too little of the other checks.
package struct KnownFinding: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// A copied or rolled-back store writes at least as much as it lost before it meets anybody.
    package static let forkedStore = KnownFinding(rawValue: 1)
    /// A clock is years ahead. Whose write must stand can then not be told by its time.
    package static let draggedClock = KnownFinding(rawValue: 2)
}

/// What holds for a whole run. Follows from the seed.
package struct SimulationSettings: Hashable, Sendable, CustomStringConvertible {
    package var replicaCount = 3
    package var topology = SimulatedTopology.mesh
    package var policy = SimulatedPolicy.lastWriterWins
    package var deletesDatasets = false
    /// Whether a dataset deleted elsewhere is made again here; else it is deleted here, too.
    package var recreatesDatasets = false
    /// Whether checkpoints are forgotten, and replicas that share none look for what differs, which
    /// so few records would not be worth otherwise.
    package var forgetsCheckpoints = false
    package var datasetCount = 1
    package var keyCount = 8
    package var stepCount = 80
    /// Of each store, what a write promises that does not say.
    package var durability = Durability.disk
    /// After which each store forgets deletions that a peer may lack.
    package var tombstoneAge = StoreOptions().tombstoneAge
    package var seed = Seed(0)
    package var findings: KnownFinding = []
    package var plantedBugs: PlantedBugs = []

    package static let replicaCounts = 3...9

    package init() {}

    package var description: String {
        "\(replicaCount) replicas, \(topology), \(policy), \(datasetCount) datasets, "
            + "\(keyCount) keys, \(durability)"
            + (deletesDatasets
                ? ", datasets deleted and \(recreatesDatasets ? "kept" : "discarded")" : "")
            + (forgetsCheckpoints ? ", checkpoints forgotten" : "")
    }

    var edges: [(Int, Int)] { topology.edges(replicaCount) }
}
