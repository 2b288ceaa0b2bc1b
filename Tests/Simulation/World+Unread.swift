import Tidemark
import TidemarkSync

// What is overwritten though no reader saw it. Where values are united a writer adds to what it
// reads, so that the numbers of what it could not read are gone, and no policy is asked about them.
// That much and no more is allowed for:
// - A write to a part over a record that went from there, and that the part had seen when it went:
//   "What leaves the scope" in the article `PartialReplicas`. So it is with what the part had made
//   of a conflict, which the model knows from whoever it was handed to; and if an older record has
//   come meanwhile from a peer that is behind, which says nothing of what went.
// - A write beside a held one, which it has seen all the same; and a held write that is let in by
//   somebody who is asked and knows no policy, so that the last writer wins: "Writes from the
//   future" in the article `ConflictHandling`.

/// What lies under a key, or did, that a reader does not see.
struct Unread {
    /// By the writes that are held there, the numbers of each.
    var held: [Dot: [Int]] = [:]
    /// What is known there, where a record may have gone because only a part is kept.
    var beside: BesideGone?
    /// The numbers that a write counts as having seen if nobody hears that it was done.
    var numbersIfUnheard: Set<Int> = []
}

/// What a part has of a key of which a record may have gone.
enum BesideGone {
    case nothing
    /// A record that has seen so much.
    case record(VersionVector)

    var seen: VersionVector {
        switch self {
        case .nothing: VersionVector()
        case .record(let vector): vector
        }
    }

    var isNothing: Bool {
        switch self {
        case .nothing: true
        case .record: false
        }
    }
}

/// A write that was held when that was last looked at.
struct HeldWrite: Hashable {
    let key: ModelKey
    let dot: Dot
}

/// What it was, and what it was held beside.
struct HeldNumbers {
    let numbers: Set<Int>
    /// nil if there was no record.
    let beside: Dot?
}

extension World {
    /// To be asked for before a write.
    func unread(_ at: Int, _ key: ModelKey) throws(StoreError) -> Unread {
        var unread = Unread()
        let replica = replicas[at]
        guard settings.policy.isUnion else { return unread }
        if replica.scopedDatasets.contains(key.dataset) {
            if let present = try replica.record(key) {
                unread.beside = .record(present.version.vector)
            } else {
                unread.beside = .nothing
            }
        }
        for record in try held(replica, key) {
            unread.held[record.version.dot] = WriteModel.numbers(in: record.value ?? [])
        }
        unread.numbersIfUnheard = Set(unread.held.values.joined())
        if unread.beside != nil, let seen = try replica.knowledge(key.dataset)?.vector {
            unread.numbersIfUnheard.formUnion(try gone(at, unread, under: key, by: seen))
        }
        return unread
    }

    /// The numbers of it that a write counts as having seen.
    func overwritten(
        _ at: Int, _ unread: Unread, under key: ModelKey, by version: Version
    ) throws(StoreError) -> Set<Int> {
        var numbers: Set<Int> = []
        for (dot, held) in unread.held where version.vector.contains(dot) {
            numbers.formUnion(held)
        }
        return try numbers.union(gone(at, unread, under: key, by: version.vector))
    }

    /// Those of them that lay in what may have gone because only a part is kept.
    ///
    /// - Parameter seen: what the write claims to have seen.
    private func gone(
        _ at: Int, _ unread: Unread, under key: ModelKey, by seen: VersionVector
    ) throws(StoreError) -> Set<Int> {
        guard let beside = unread.beside else { return [] }
        var numbers: Set<Int> = []
        for write in model.writes where write.key == key {
            let dot = write.version.dot
            // Whose disk went back may have had it written anew, under another dot.
            let mayBeAnew = beside.isNothing && replicas[write.replica].mayRenew
            let isSeen = seen.contains(dot) && !beside.seen.contains(dot)
            if isSeen || mayBeAnew { numbers.insert(write.number) }
        }
        // What was made of a conflict here is no write of the model.
        let ids = replicas[at].ids
        for other in replicas where other.index != at { try noteHandedOver(other, key) }
        for (dot, handed) in model.handedOver[key] ?? [:]
        where ids.contains(dot.replica) && seen.contains(dot) && !beside.seen.contains(dot) {
            numbers.formUnion(handed)
        }
        return numbers
    }

    /// Notes what a replica has, for when it is down, or has something else.
    func noteHandedOver(_ replica: SimulatedReplica, _ key: ModelKey) throws(StoreError) {
        guard settings.policy.isUnion, settings.traits.contains(.parts), replica.store != nil
        else { return }
        var records = try replica.record(key).map { [$0] } ?? []
        records += try held(replica, key)
        for record in records {
            model.noteHandedOver(
                WriteModel.numbers(in: record.value ?? []), as: record.version.dot, under: key)
        }
    }

    /// What is held of a key because of its date.
    private func held(
        _ replica: SimulatedReplica, _ key: ModelKey
    ) throws(StoreError) -> [Record] {
        guard settings.traits.contains(.clocks),
            let found = try replica.store?.existingDataset(SimulatedReplica.name(key.dataset))
        else { return [] }
        let name = SimulatedReplica.key(key.number)
        return try found.quarantined().map(\.record).filter { $0.key == name }
    }

    /// Finds out which held writes met the record of their key since the last time, and lets go
    /// what lost by its date. Where it was settled by a policy there is a new write of this
    /// replica, which must have all of it.
    ///
    /// - Parameter isAnswering: whether the replica was asked by another one.
    func followHeld(_ at: Int, isAnswering: Bool) {
        let replica = replicas[at]
        guard settings.traits.contains(.clocks), settings.policy.isUnion, replica.isUp, !isOver
        else { return }
        attempt("reading what is held at \(at)") { () throws(StoreError) in
            let held = try heldNumbers(replica)
            // While there is trouble it may have been asked by somebody else meanwhile.
            let mayHaveAnswered = isAnswering || !isHealing
            for (write, was) in replica.held where held[write] == nil && mayHaveAnswered {
                guard let record = try replica.record(write.key),
                    record.version.vector.contains(write.dot)
                else { continue }
                let dot = record.version.dot
                guard dot == was.beside || !replica.ownIDs.contains(dot.replica) else { continue }
                let left = WriteModel.numbers(in: record.value ?? [])
                let lost = was.numbers.subtracting(left)
                model.allowLossByDate(of: lost, under: write.key)
                // By then it may hold what was written to the dataset that goes into it.
                if isMerging, write.key.dataset == 0 {
                    let other = ModelKey(dataset: 1, number: write.key.number)
                    model.allowLossByDate(of: lost, under: other)
                }
            }
            replica.held = held
        }
    }

    private func heldNumbers(
        _ replica: SimulatedReplica
    ) throws(StoreError) -> [HeldWrite: HeldNumbers] {
        var held: [HeldWrite: HeldNumbers] = [:]
        for dataset in 0..<settings.datasetCount {
            guard
                let found = try replica.store?.existingDataset(SimulatedReplica.name(dataset))
            else { continue }
            for write in try found.quarantined() {
                guard let number = SimulatedReplica.number(of: write.record.key) else { continue }
                let key = ModelKey(dataset: dataset, number: number)
                let local = try replica.record(key)
                var numbers = Set(WriteModel.numbers(in: write.record.value ?? []))
                numbers.formUnion(WriteModel.numbers(in: local?.value ?? []))
                held[HeldWrite(key: key, dot: write.record.version.dot)] = HeldNumbers(
                    numbers: numbers, beside: local?.version.dot)
            }
        }
        return held
    }
}
