/// The store's own datasets: what the sync module has to remember beside the users' records, in the
/// same log and, where it matters, in the same batch.
///
/// Their names begin with `~`, which no user's name does. No list of datasets has them, no peer is
/// told of them or may ask for them, and they are never deleted. Of their records only the newest
/// version is kept, whatever history the store's options ask for.
///
/// The number of each is fixed, at the top of all numbers: so the numbers that a store gives out
/// are the same whether it has these datasets or not, and a store that is still empty can take over
/// the numbers of another.
package enum SystemDataset: String, CaseIterable, Sendable {
    /// Kept free: nothing is written to it. It keeps its name, since a golden store has it.
    case peers
    /// Tokens of the last exchange with each peer, by which a store that went back in time or was
    /// copied is told from the one that it was.
    case batons
    /// Writes that are dated too far ahead.
    case quarantine
    /// Conflicts and how they were settled.
    case conflicts
    /// Conflicts that are not settled yet.
    case pending
    /// Records that could not be exchanged.
    case failed
    /// Exchanges: when, with whom, and what they changed.
    case exchanges
    /// What a synchronizer keeps for its next life: which datasets it is subscribed to, and when
    /// it last exchanged each.
    case sync
    /// Datasets that went into others.
    case merged
    /// Datasets of which only a part is kept here, and what is known of each peer about that part.
    case scopes
    /// How far a pull in the order of keys has come.
    case sweeps

    /// Stored: in ``failed`` it follows the name of a dataset in the keys of those records of it
    /// that were left out of what a peer was handed. No name has a byte as low as this.
    package static let outgoingFailures: UInt8 = 1

    /// The name under which it is stored.
    var storedName: String { "~\(rawValue)" }

    /// Stored; never changed and never given to another. 8 was that of one that nothing was ever
    /// written to.
    var number: DatasetID {
        let place: DatasetID =
            switch self {
            case .peers: 0
            case .batons: 1
            case .quarantine: 2
            case .conflicts: 3
            case .pending: 4
            case .failed: 5
            case .exchanges: 6
            case .sync: 7
            case .merged: 9
            case .scopes: 10
            case .sweeps: 11
            }
        return Limits.systemDatasetNumbers.lowerBound + place
    }

    /// With what the keys begin that are about one dataset, in those of the store's own datasets
    /// that keep something of each: its name and a zero, which no name has.
    package static func prefix(of dataset: String) -> [UInt8] { Array(dataset.utf8) + [0] }

    init?(number: DatasetID) {
        guard let found = Self.allCases.first(where: { $0.number == number }) else { return nil }
        self = found
    }
}

extension Store {
    /// Opens one of the store's own datasets, creating it if there is none yet. O(1).
    /// - Throws: `readOnly` if it would have to be created; `closed`, `writerStopped`,
    ///   `corruption`, `inputOutput`.
    package func systemDataset(_ which: SystemDataset) throws(StoreError) -> Dataset {
        let state = try engine.openDataset(which.storedName, number: which.number)
        return Dataset(state, in: self)
    }

    /// Opens one of the store's own datasets; nil if nothing was ever written to it. O(1).
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    package func existingSystemDataset(_ which: SystemDataset) throws(StoreError) -> Dataset? {
        guard let state = try engine.existingState(named: which.storedName), state.isVisible else {
            return nil
        }
        return Dataset(state, in: self)
    }
}
