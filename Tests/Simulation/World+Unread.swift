import Tidemark
import TidemarkSync

// What is overwritten though no reader saw it. Where values are united a writer adds to what it
// reads, so that the numbers of what it could not read are gone, and no policy is asked about them.
// That much and no more is allowed for:
// - A write to a part over a record that went from there, and that the part had seen when it went:
//   "What leaves the scope" in the article `PartialReplicas`.
// - A write beside a held one, which it has seen all the same; and a held write that is let in by
//   somebody who is asked and knows no policy, so that the last writer wins: "Writes from the
//   future" in the article `ConflictHandling`.

/// What lies under a key, or did, that a reader does not see.
struct Unread {
    /// By the writes that are held there, the numbers of each.
    var held: [Dot: [Int]] = [:]
    /// Whether a record may have gone, because only a part is kept.
    var mayHaveGone = false
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
        guard settings.policy.isUnion, let store = replica.store else { return unread }
        if replica.scopedDatasets.contains(key.dataset) {
            unread.mayHaveGone = try replica.record(key) == nil
        }
        guard settings.traits.contains(.clocks),
            let found = try store.existingDataset(SimulatedReplica.name(key.dataset))
        else { return unread }
        let name = SimulatedReplica.key(key.number)
        for write in try found.quarantined() where write.record.key == name {
            unread.held[write.record.version.dot] = WriteModel.numbers(
                in: write.record.value ?? [])
        }
        return unread
    }

    /// The numbers of it that a write counts as having seen.
    func overwritten(
        _ unread: Unread, under key: ModelKey, by version: Version
    ) -> Set<Int> {
        var numbers: Set<Int> = []
        for (dot, held) in unread.held where version.vector.contains(dot) {
            numbers.formUnion(held)
        }
        guard unread.mayHaveGone else { return numbers }
        for write in model.writes where write.key == key {
            // Whose disk went back may have had it written anew, under another dot.
            let isSeen =
                version.vector.contains(write.version.dot) || replicas[write.replica].mayRenew
            if isSeen { numbers.insert(write.number) }
        }
        return numbers
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
                guard dot == was.beside || !replica.ids.contains(dot.replica) else { continue }
                let left = WriteModel.numbers(in: record.value ?? [])
                model.allowLoss(of: was.numbers.subtracting(left), under: write.key)
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
