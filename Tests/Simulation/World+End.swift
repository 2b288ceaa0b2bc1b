import TestSupport
import Tidemark
import TidemarkSync

extension World {
    // MARK: - Healing

    /// All trouble ends, and everything is exchanged until nothing moves any more.
    func heal() {
        guard violation == nil else { return }
        note("healing")
        joinAll()
        // The power may have failed in the last step.
        afterEvent()
        // What is under way ends, and what is down comes up.
        _ = pump { true }
        if model.hasFarClock { letDatesCome() }
        guard violation == nil else { return }
        for replica in replicas {
            replica.slowness = 0
            replica.storage.observe(nil)
            emptyDisk(replica)
            if replica.store == nil { open(replica) }
        }
        guard violation == nil, activeExchanges == 0 else {
            return fail(.neverRests, "\(activeExchanges) exchanges never end")
        }
        let roundsMax = 6 + 2 * settings.replicaCount
        var quietRounds = 0
        for round in 0..<roundsMax {
            var moved = 0
            // There and back, so that news pass along a whole chain in one round.
            for (one, other) in settings.edges + settings.edges.reversed() {
                let isForward = round % 2 == 0 || settings.topology == .star
                let (from, to) = isForward ? (one, other) : (other, one)
                moved += movedByExchange(from, to)
                guard violation == nil else { return }
            }
            // That a dataset was deleted, or what somebody has seen, moves no record.
            quietRounds = moved == 0 ? quietRounds + 1 : 0
            if quietRounds >= 3 { return }
        }
        fail(.neverRests, "records still move after \(roundsMax) rounds")
    }

    /// What is held because of its date is let in only when the date has come.
    private func letDatesCome() {
        let offsets = replicas.map(\.clockOffset)
        let span = (offsets.max() ?? 0) - (offsets.min() ?? 0)
        time.pass(to: time.now + UInt64(max(0, span)))
        setClocks()
    }

    private func movedByExchange(_ from: Int, _ to: Int) -> Int {
        switch exchangeNow(from: from, to: to) {
        case .success(let results): return results.reduce(0) { $0 + $1.pulled + $1.pushed }
        case .failure(let error):
            // Another id was taken, or two copies met: there is more to do.
            if ![.peerChanged, .contended, .sameReplica].contains(error.code) {
                fail(.syncFailure, "while healing, \(from) > \(to): \(error.code): \(error)")
            }
            return 1
        }
    }

    // MARK: - What must hold at the end

    func checkEnd() {
        attempt("reading at the end") { () throws(StoreError) in
            for dataset in 0..<settings.datasetCount {
                try checkEqual(dataset)
                if !model.deletedDatasets.contains(dataset) { try checkWrites(dataset) }
            }
        }
    }

    private func checkEqual(_ dataset: Int) throws(StoreError) {
        let first = replicas[0]
        let isVisible = try first.isVisible(dataset)
        for other in replicas.dropFirst() {
            let pair = "d\(dataset) on 0 and \(other.index)"
            guard try other.isVisible(dataset) == isVisible else {
                return fail(.divergence, "\(pair): it lives on one of them only")
            }
            for number in 0..<settings.keyCount {
                let key = ModelKey(dataset: dataset, number: number)
                let (here, there) = (try first.record(key), try other.record(key))
                // Each forgets deletions in its own time.
                let isForgotten =
                    here?.value == nil && there?.value == nil && (here == nil || there == nil)
                let isSame =
                    here?.value == there?.value && here?.version.dot == there?.version.dot
                    && here?.version.time == there?.version.time
                guard isSame || isForgotten else {
                    return fail(
                        .divergence,
                        "\(pair), k\(number): \(Self.text(here)) and \(Self.text(there))")
                }
            }
            let (here, there) = (try first.knowledge(dataset), try other.knowledge(dataset))
            guard here?.vector == there?.vector else {
                return fail(
                    .divergence, "\(pair): seen \(Self.text(here)) and \(Self.text(there))")
            }
            guard isVisible else { continue }
            let name = SimulatedReplica.name(dataset)
            let digests = (
                try first.store?.existingDataset(name)?.digest(),
                try other.store?.existingDataset(name)?.digest()
            )
            guard digests.0 == digests.1 else {
                return fail(.divergence, "\(pair): the same records and unequal digests")
            }
        }
    }

    private func checkWrites(_ dataset: Int) throws(StoreError) {
        let forgotten = try replicas[0].knowledge(dataset)?.forgotten ?? ForgottenDeletions()
        for number in 0..<settings.keyCount {
            let key = ModelKey(dataset: dataset, number: number)
            let record = try replicas[0].record(key)
            let tried = model.tried[key] ?? []
            let numbers = WriteModel.numbers(in: record?.value ?? [])
            guard Set(numbers).isSubset(of: tried) else {
                return fail(.inventedValue, "\(key): \(Self.text(record))")
            }
            let required = model.writes.filter { $0.key == key && $0.mustSurvive }
            switch settings.policy {
            case .lastWriterWins where model.hasFarClock: continue
            case .lastWriterWins: checkLast(key, record, required, forgotten)
            case .union:
                if let lost = required.first(where: { !numbers.contains($0.number) }) {
                    fail(.lostWrite, "\(key): write \(lost.number) of \(lost.replica)")
                }
            case .keepLocal, .keepRemote: continue
            }
        }
    }

    /// Under last writer wins nothing older than the latest write that must survive may stand.
    /// Where there is nothing, a deletion was forgotten, which may be one that need not survive.
    private func checkLast(
        _ key: ModelKey, _ record: Record?, _ required: [ModelWrite],
        _ forgotten: ForgottenDeletions
    ) {
        let latest = required.max { $1.version.isLater(than: $0.version) }
        guard let latest else { return }
        let expected =
            "write \(latest.number) of \(latest.replica), \(latest.version.dot) "
            + "\(latest.version.time)\(latest.isDeletion ? ", a deletion" : "")"
        guard let record else {
            let isForgotten =
                model.deletedKeys.contains(key)
                && (model.hasRolledBack || forgotten.vector.contains(latest.version.dot))
            if !latest.isDeletion, !isForgotten {
                fail(.lostWrite, "\(key): nothing in place of \(expected)")
            }
            return
        }
        let isOlder =
            record.version.dot != latest.version.dot && latest.version.isLater(than: record.version)
        guard isOlder else {
            // One dot, two values.
            let isSame = record.version.dot == latest.version.dot && !model.hasRolledBack
            let value = WriteModel.numbers(in: record.value ?? [])
            if isSame, value != (latest.isDeletion ? [] : [latest.number]) {
                fail(.lostWrite, "\(key): \(Self.text(record)) in place of \(expected)")
            }
            return
        }
        let isBack = latest.isDeletion && record.value != nil
        fail(
            isBack ? .resurrection : .lostWrite,
            "\(key): \(Self.text(record)) in place of \(expected)")
    }

    private static func text(_ record: Record?) -> String {
        guard let record else { return "nothing" }
        let value = record.value.map { "\(WriteModel.numbers(in: $0))" } ?? "a deletion"
        return "\(value) \(record.version.dot) \(record.version.time)"
    }

    private static func text(_ knowledge: DatasetKnowledge?) -> String {
        knowledge.map { "\($0.vector)" } ?? "nothing"
    }
}
