import Tidemark

/// A key of one of the datasets, which belongs to one replica alone or to all of them.
struct TortureKey: Hashable, Sendable, CustomStringConvertible {
    static let datasetNames = ["left", "right"]
    /// Keys of each replica in each dataset.
    static let ownCount = 150
    /// Keys of all replicas in each dataset.
    static let sharedCount = 24

    /// The place in ``datasetNames``.
    let dataset: Int
    /// The replica that alone writes it; nil if all do.
    let owner: Int?
    let number: Int

    init(dataset: Int, owner: Int?, number: Int) {
        self.dataset = dataset
        self.owner = owner
        self.number = number
    }

    /// Reads what ``name`` says; nil if it is no key that any replica writes.
    init?(dataset: Int, name: Substring) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard Self.datasetNames.indices.contains(dataset), parts.count == 2,
            let number = Int(parts[1])
        else { return nil }
        let owner = Int(parts[0])
        let count = owner == nil ? Self.sharedCount : Self.ownCount
        guard number < count, owner ?? 0 >= 0 else { return nil }
        self.init(dataset: dataset, owner: owner, number: number)
        // There is one way only to write it.
        guard self.name == name else { return nil }
    }

    /// Reads what ``description`` says.
    init?(_ description: Substring) {
        guard let colon = description.firstIndex(of: ":"),
            let dataset = Self.datasetNames.firstIndex(of: String(description[..<colon]))
        else { return nil }
        self.init(dataset: dataset, name: description[description.index(after: colon)...])
    }

    /// `2/17` for a key of replica 2, `s/5` for one of all.
    var name: String { "\(owner.map { "\($0)" } ?? "s")/\(number)" }

    var bytes: [UInt8] { Array(name.utf8) }

    /// `left:2/17`
    var description: String { "\(Self.datasetNames[dataset]):\(name)" }
}

/// The place of a version in the order by which the last writer wins.
struct Stamp: Hashable, Comparable, Sendable, CustomStringConvertible {
    let time: HybridTime
    let dot: Dot

    init(time: HybridTime, dot: Dot) {
        self.time = time
        self.dot = dot
    }

    init(_ version: Version) {
        self.init(time: version.time, dot: version.dot)
    }

    /// Reads what ``description`` says.
    init?(_ description: Substring) {
        let parts = description.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let time = UInt64(parts[0]), let counter = UInt64(parts[1]),
            let replica = ReplicaID(String(parts[2]))
        else { return nil }
        self.init(
            time: HybridTime(rawValue: time), dot: Dot(replica: replica, counter: counter))
    }

    static func < (left: Stamp, right: Stamp) -> Bool {
        left.time != right.time ? left.time < right.time : left.dot < right.dot
    }

    /// Time, counter and replica: `126230400000000.42.0123...`
    var description: String { "\(time.rawValue).\(dot.counter).\(dot.replica)" }
}
