// Why the merges of a page share their vectors.
//
// The version that settles a conflict has seen what both versions had. Of two replicas that went on
// apart, each conflict joins another counter of the one with another of the other: a vector of its
// own for each record, which is defined in the log, on the wire and in the tables of segments, and
// costs more there than the record itself.
//
// A vector that has more is as true. For each key, the record that is here contains every write to
// that key that the dataset's vector contains, but for wiped ones (see below), and the record of
// the peer every one that the vector contains which the peer told with the page. So whatever is
// joined of these two vectors, a version that joins both records has seen all writes to its key
// that it covers. (A local write has the whole vector of its dataset for the same reason.) What is
// taken is the join of what the versions of the page have seen that are merged, and no more: one
// vector for all of them, but for the entry of the winner's own replica, which is its dot's.
//
// It does not hold of writes that are held because of their date: a dataset's vector has them, and
// the record of their key has not. A version that claimed to have seen one would keep it from ever
// being let in. So both vectors are taken without what either side holds, and without all that came
// after that where it was made. Of the peer that is known with the pages of a sweep alone, and of
// what lies here it is asked before the page is compared.
//
// Nor does it hold where the dataset was deleted once: what was wiped is in its vector, and lives
// on elsewhere where it had won over something that the deletion had not seen. A version that
// claimed to have seen such a write would keep it out. So nothing is shared there.
//
// What it costs: a deletion of the dataset wipes the versions whose whole vectors it covers.
// Whoever deletes it, and had seen some of the versions that a page merges elsewhere and not all,
// takes none of these with it: what was merged together survives together. No vector that several
// share could tell a deletion that had seen all that one of them replaced from one that had not.
// They survive on every replica, also where they were merged by themselves and went: a version
// whose dot was wiped and whose vector was not is taken up again.
//
// A page with few conflicts is not worth it, nor is one whose winners are of so many replicas and
// authors that there would be almost as many vectors as merges, each of them longer: their merges
// have just what both versions had. So are versions merged that either vector does not cover,
// because an exchange broke off, and such whose own entry says more than their dot.

/// Collects the merges of one page whose vectors may be shared.
struct SharedMerges {
    /// Fewer conflicts in a page are merged with vectors of their own.
    static let countMin = 64
    /// So are those that would not share a vector with so many on average: each group has a vector
    /// of its own, which has an entry for everybody whose writes the page merges.
    static let sharedByMin = 4

    /// One that may share its vector. Numbers are those of the comparison.
    struct Member {
        let merge: Int
        let item: Int
        let local: Int
        let localCounter: UInt64
    }

    /// Merges of one replica and author.
    struct Group: Hashable {
        let replica: ReplicaID
        let author: String
    }

    private(set) var members: [Member] = []
    private(set) var groups: [Group] = []
    private var groupNumbers: [Group: Int] = [:]
    /// For each origin of the page, the most that any of its versions had seen of its writer.
    private var incomingHighest: [UInt64] = []
    private var localHighest: [UInt64] = []
    /// For each origin, the group of the merges that it won.
    private var incomingGroups: [Int] = []
    private var localGroups: [Int] = []

    var isWorthIt: Bool {
        members.count >= Self.countMin && groups.count * Self.sharedByMin <= members.count
    }

    /// - Parameter highest: the incoming version's own entry in its vector.
    mutating func add(_ member: Member, origin: Int, highest: UInt64) {
        members.append(member)
        Self.note(highest, at: origin, in: &incomingHighest)
        Self.note(member.localCounter, at: member.local, in: &localHighest)
    }

    private static func note(_ counter: UInt64, at index: Int, in highest: inout [UInt64]) {
        while highest.count <= index { highest.append(0) }
        highest[index] = max(highest[index], counter)
    }

    /// What all of them have seen together.
    ///
    /// - Parameters:
    ///   - incoming: the writer of an origin of the page, and what that had seen of others.
    ///   - local: the same of an origin that is here.
    func joined(
        incoming: (Int) -> (ReplicaID, VersionVector), local: (Int) -> (ReplicaID, VersionVector)
    ) -> VersionVector {
        var joined = VersionVector()
        func join(_ highest: [UInt64], _ origin: (Int) -> (ReplicaID, VersionVector)) {
            for (index, counter) in highest.enumerated() where counter > 0 {
                let (replica, others) = origin(index)
                joined.formUnion(others)
                joined.insert(Dot(replica: replica, counter: counter))
            }
        }
        join(incomingHighest, incoming)
        join(localHighest, local)
        return joined
    }

    /// The number of the group of merges that an origin won.
    ///
    /// - Parameter group: asked for once for each origin.
    mutating func number(
        ofOrigin index: Int, isIncoming: Bool, _ group: () -> Group
    ) -> Int {
        let known =
            isIncoming
            ? Self.number(at: index, in: incomingGroups) : Self.number(at: index, in: localGroups)
        if known >= 0 { return known }
        let group = group()
        let number = groupNumbers[group] ?? groups.count
        if number == groups.count {
            groups.append(group)
            groupNumbers[group] = number
        }
        if isIncoming {
            Self.put(number, at: index, in: &incomingGroups)
        } else {
            Self.put(number, at: index, in: &localGroups)
        }
        return number
    }

    /// -1 if there is none.
    private static func number(at index: Int, in numbers: [Int]) -> Int {
        index < numbers.count ? numbers[index] : -1
    }

    private static func put(_ number: Int, at index: Int, in numbers: inout [Int]) {
        while numbers.count <= index { numbers.append(-1) }
        numbers[index] = number
    }
}
