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
package enum SimulatedPolicy: String, Hashable, Sendable {
    case lastWriterWins, union, keepLocal, keepRemote
    /// The store's own merge of JSON documents, and of sets.
    case autoMerge, mergeable
    /// As `union`, by a handler that at times stops or throws, as long as there is trouble.
    case stopping
    /// Nothing is decided before somebody does it by hand.
    case leaving

    /// Of which a plain run has one.
    static let plain: [SimulatedPolicy] = [.lastWriterWins, .union, .keepLocal, .keepRemote]

    /// Whether nothing that was written may be missing in the end. There are no deletions then.
    var isUnion: Bool {
        switch self {
        case .lastWriterWins, .keepLocal, .keepRemote: false
        case .union, .autoMerge, .mergeable, .stopping, .leaving: true
        }
    }

    /// Whether conflicts may wait.
    var leavesConflicts: Bool { self == .stopping || self == .leaving }
}

/// How a value says for which writes it stands.
enum ValueForm: Hashable, Sendable {
    /// Their numbers one after the other.
    case numbers
    /// A JSON document with a list of the numbers, and a field by which a part is chosen.
    case document
    /// A set that grows, in the store's own form.
    case set
}

/// Schedules of these kinds are drawn only on request: they leave too little of the other checks.
package struct KnownFinding: OptionSet, Hashable, Sendable {
    package let rawValue: Int

    package init(rawValue: Int) {
        self.rawValue = rawValue
    }

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
    /// Milliseconds that other clocks may be ahead. As it is, more than their being set by minutes
    /// comes to.
    package var clockAheadMax: UInt64 = 3 * 3_600_000
    /// How many replicas, the last ones, may keep a part.
    package var partCount = 0
    /// Whether they keep what leaves their part.
    package var keepsOutside = false
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
            + (traits.isEmpty ? "" : ", \(traits)")
    }

    package var traits: SimulatedTraits { SimulatedTraits(of: seed) }

    var form: ValueForm {
        switch policy {
        case .mergeable: .set
        case .autoMerge: .document
        default: partCount > 0 ? .document : .numbers
        }
    }

    /// The number of the large dataset; nil if there is none.
    var largeDataset: Int? { traits.contains(.segments) ? datasetCount : nil }

    var edges: [(Int, Int)] { topology.edges(replicaCount) }
}
