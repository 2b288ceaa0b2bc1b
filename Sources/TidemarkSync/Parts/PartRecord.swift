import Tidemark

// What a partial replica remembers of itself and of its peers, in its own dataset
// `SystemDataset.scopes`: under the dataset's name and a zero what part of it is kept, and under
// the same with the peer's id how far that has come with each.

/// Which part of a dataset is kept here.
struct PartRecord: Hashable, Sendable {
    /// Drawn at random for the first scope of a dataset that was kept whole, and one more with each
    /// that takes its place. Positions hold under the scope of one number only, also if an earlier
    /// scope comes back: in between records were let go.
    var generation: UInt64
    var scope: SyncScope
    var action: OutOfScopeAction
    /// Whether it took the place of the whole dataset.
    var isFirst = false
    /// Whether the dataset is to be kept whole again as soon as all of it is here.
    var isEnding = false
    /// Whether what was here while the dataset was whole may be nowhere else. Others may have
    /// handed it over and let go of it since, so all of it stays until a peer that keeps
    /// everything has it.
    var isHandingOver = false
    /// The scope before: what a peer had told under it is here, as far as it still belongs.
    var former: SyncScope?
    /// For each peer what it brought, or told, in the place of records that went from here: up to
    /// there nobody else may take what this replica hands out for all that it has seen. Under
    /// ``ReplicaID/nobody`` what went without a peer.
    var lost: [ReplicaID: VersionVector] = [:]

    /// Whether a version is handed on to a peer whatever it holds: what was written here, what has
    /// seen such as the peer lacks, and everything while that has to be handed over.
    func handsOn(
        _ version: Version, ofWhom ownIDs: [ReplicaID], to theirs: VersionVector
    ) -> Bool {
        isHandingOver || ownIDs.contains(version.dot.replica)
            || ownIDs.contains { version.vector[$0] > theirs[$0] }
    }

    /// More sources count as nobody.
    static let lostSourcesMax = 64

    /// Notes that records went that had seen as much.
    mutating func lose(_ seen: VersionVector, to peer: ReplicaID) {
        let isKnown = lost[peer] != nil || lost.count < Self.lostSourcesMax
        lost[isKnown ? peer : .nobody, default: VersionVector()].formUnion(seen)
    }

    /// Whether what the dataset has seen may be said to a peer: whatever of it went from here is
    /// there.
    ///
    /// - Parameter theirs: what the peer has seen.
    func mayClaim(_ ours: VersionVector, to peer: ReplicaID, _ theirs: VersionVector) -> Bool {
        lost.allSatisfy { source, seen in
            source == peer
                || seen.dots.allSatisfy { min($0.counter, ours[$0.replica]) <= theirs[$0.replica] }
        }
    }

    /// Whether a peer that has told everything has told what went from here because it has that.
    /// What it holds apart because of its date it has, and tells nobody who keeps a part.
    ///
    /// - Parameters:
    ///   - told: what the peer says it has told.
    ///   - seen: what it had seen before.
    ///   - ours: what is to be claimed here.
    func isTold(
        by peer: ReplicaID, _ told: VersionVector, seen: VersionVector, ours: VersionVector,
        ownIDs: [ReplicaID]
    ) -> Bool {
        guard let lost = lost[peer] else { return true }
        return lost.dots.allSatisfy { dot in
            let bound = ownIDs.contains(dot.replica) ? ours : seen
            return min(dot.counter, bound[dot.replica]) <= told[dot.replica]
        }
    }
}

/// How far the exchange of the part has come with one peer.
struct PartProgress: Hashable, Sendable {
    /// Of the scope under which the position in the checkpoint of the peer holds; 0 for none.
    var generation: UInt64 = 0
    /// In our order of change: what came from others up to here is as this peer has it.
    var checkedThrough = SyncCount.zero
    /// In the peer's order of change: up to here it told everything of the former scope.
    var formerThrough = SyncCount.zero
    /// In the order of a peer that keeps a part itself: what it told up to here is here.
    var takenThrough = SyncCount.zero
}

// MARK: - As bytes

extension PartRecord {
    private static let form: UInt8 = 2
    /// Without the byte of what is handed over.
    private static let formerForm: UInt8 = 1

    /// Byte 2, varint generation, byte 1 if what leaves the scope is kept, byte 1 if it is the
    /// first, byte 1 if it is to end, byte 1 if what was whole is yet to be handed over, counted
    /// scope, byte and counted former scope, varint n, then n times a replica's 16 bytes and varint
    /// n entries, each a replica and varint counter.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.put(Self.form)
        writer.putVarint(generation)
        writer.putFlag(action == .keep)
        writer.putFlag(isFirst)
        writer.putFlag(isEnding)
        writer.putFlag(isHandingOver)
        writer.putBytes(scope.encoded)
        writer.putFlag(former != nil)
        if let former { writer.putBytes(former.encoded) }
        writer.putCount(lost.count)
        for (peer, seen) in lost.sorted(by: { $0.key < $1.key }) {
            writer.put(peer)
            writer.putCount(seen.count)
            for dot in seen.dots {
                writer.put(dot.replica)
                writer.putVarint(dot.counter)
            }
        }
        return writer.bytes
    }

    init(decoding bytes: [UInt8]) throws(SyncError) {
        var reader = ByteReader(bytes)
        let form = try reader.takeByte()
        guard form == Self.form || form == Self.formerForm else {
            throw reader.failure("a part of an unknown form")
        }
        generation = try reader.takeVarint()
        action = try reader.takeFlag() ? .keep : .drop
        isFirst = try reader.takeFlag()
        isEnding = try reader.takeFlag()
        isHandingOver = form == Self.form ? try reader.takeFlag() : false
        scope = try SyncScope(decoding: reader.takeBytes("scope", max: SyncScope.bytesMax))
        if try reader.takeFlag() {
            former = try SyncScope(decoding: reader.takeBytes("scope", max: SyncScope.bytesMax))
        }
        for _ in 0..<(try reader.takeCount(of: "peers", bytesEach: 17)) {
            let peer = try reader.takeReplica()
            var seen = VersionVector()
            for _ in 0..<(try reader.takeCount(of: "entries", bytesEach: 17)) {
                let replica = try reader.takeReplica()
                seen.insert(Dot(replica: replica, counter: try reader.takeVarint()))
            }
            lost[peer] = seen
        }
        try reader.finish()
    }
}

extension PartProgress {
    /// Four varints.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.putVarint(generation)
        writer.putVarint(checkedThrough.rawValue)
        writer.putVarint(formerThrough.rawValue)
        writer.putVarint(takenThrough.rawValue)
        return writer.bytes
    }

    /// nil if the bytes are none: it then counts as lost, and everything is told again.
    init?(decoding bytes: [UInt8]) {
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            generation = try reader.takeVarint()
            checkedThrough = SyncCount(rawValue: try reader.takeVarint())
            formerThrough = SyncCount(rawValue: try reader.takeVarint())
            takenThrough = SyncCount(rawValue: try reader.takeVarint())
            try reader.finish()
        } catch {
            return nil
        }
    }
}

extension ByteWriter {
    mutating func put(_ replica: ReplicaID) {
        putFixed(replica.high)
        putFixed(replica.low)
    }
}

extension ByteReader {
    mutating func takeReplica() throws(SyncError) -> ReplicaID {
        let high = try takeFixed(UInt64.self)
        return ReplicaID(high: high, low: try takeFixed(UInt64.self))
    }
}
