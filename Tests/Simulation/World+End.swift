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
        isHealing = true
        if model.hasFarClock { letDatesCome() }
        letRecordsExpire()
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
        letRefusedIn()
        // A hub asks nobody: what waits there came with the files of one that did, and no exchange
        // settles it.
        if settings.topology == .star { settleAll(at: 0) }
        guard violation == nil else { return }
        // What waited, was held or was late comes after all else, and is handed on after that.
        let roundsMax = (6 + 2 * settings.replicaCount) * (settings.traits.isEmpty ? 1 : 2)
        var quietRounds = 0
        for round in 0..<roundsMax {
            var moved = 0
            sweepWhatPartsAwait()
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
        if settings.traits.contains(.clocks) {
            // Clocks are set right, to the one that is furthest ahead now, and all wait until they
            // are where any ever was. Nothing is dated further ahead of that than all believe.
            let most = offsets.max() ?? 0
            for replica in replicas { replica.clockOffset = most }
            setClocks()
            let latest = replicas.map(\.latestClock).max() ?? 0
            let now = replicas.map(\.storage.clockMilliseconds).min() ?? latest
            time.pass(to: time.now + (latest > now ? latest - now : 0) + 1_000)
            setClocks()
            return
        }
        let span = (offsets.max() ?? 0) - (offsets.min() ?? 0)
        time.pass(to: time.now + UInt64(max(0, span)))
        setClocks()
    }

    /// Somebody has what was refused tried again, and gives up peers that have had it and are no
    /// more.
    private func letRefusedIn() {
        guard settings.traits.contains(.refusals) else { return }
        for replica in replicas {
            attempt("retrying at \(replica.index)") { () throws(StoreError) in
                for dataset in 0...(settings.largeDataset ?? settings.datasetCount - 1) {
                    let name = SimulatedReplica.name(dataset)
                    let found = try replica.store?.datasetForSync(name, creating: false)
                    try found?.retryFailedRecords()
                    for failed in try found?.failedRecords() ?? []
                    where !replicas.contains(where: { $0.lastID == failed.peer }) {
                        try found?.retire(failed.peer)
                    }
                }
            }
        }
    }

    private func movedByExchange(_ from: Int, _ to: Int) -> Int {
        // Nobody asks who keeps a part; a hub among the two is the one that is asked anyway.
        let isTurned = replicas[to].mayBePart
        let (from, to) = isTurned ? (to, from) : (from, to)
        guard !replicas[to].mayBePart else { return 0 }
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
        for replica in replicas { recall(replica.index) }
        attempt("reading at the end") { () throws(StoreError) in
            for dataset in 0..<settings.datasetCount {
                try checkEqual(dataset)
                if !model.deletedDatasets.contains(dataset) { try checkWrites(dataset) }
            }
            try checkLarge()
        }
        if violation == nil, !settings.traits.isEmpty { checkDigests() }
    }

    /// A digest that was kept up with changes is the one that is made anew by a store that was
    /// opened afresh.
    private func checkDigests() {
        for replica in replicas {
            attempt("digesting \(replica.index)") { () throws(StoreError) in
                var kept: [ConvergenceDigest?] = []
                for dataset in 0..<settings.datasetCount {
                    kept.append(try replica.digest(dataset))
                }
                reopen(replica.index)
                for dataset in 0..<settings.datasetCount
                where try replica.digest(dataset) != kept[dataset] {
                    fail(.divergence, "d\(dataset) on \(replica.index): its digest is not kept up")
                }
            }
        }
    }

    private func checkEqual(_ dataset: Int) throws(StoreError) {
        let first = replicas[0]
        let isVisible = try first.isVisible(dataset)
        for other in replicas.dropFirst() {
            if other.mayBePart, let scope = try other.scope(of: dataset) {
                try checkPart(other, dataset, of: scope, beside: first)
                continue
            }
            let pair = "d\(dataset) on 0 and \(other.index)"
            guard try other.isVisible(dataset) == isVisible else {
                return fail(.divergence, "\(pair): it lives on one of them only")
            }
            for number in 0..<settings.keyCount {
                let key = ModelKey(dataset: dataset, number: number)
                let (here, there) = (try first.record(key), try other.record(key))
                guard isSame(here, there) else {
                    return fail(
                        .divergence,
                        "\(pair), k\(number): \(Self.text(here)) and \(Self.text(there))")
                }
            }
            let (here, there) = (try first.knowledge(dataset), try other.knowledge(dataset))
            // Of what nobody has ever written some may know the name.
            let nothing = VersionVector()
            guard here?.vector ?? nothing == there?.vector ?? nothing else {
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

    private func isSame(_ here: Record?, _ there: Record?) -> Bool {
        // Each forgets deletions in its own time.
        if here?.value == nil, there?.value == nil, here == nil || there == nil { return true }
        return here?.value == there?.value && here?.version.dot == there?.version.dot
            && here?.version.time == there?.version.time
    }

    private func checkWrites(_ dataset: Int) throws(StoreError) {
        let forgotten = try replicas[0].knowledge(dataset)?.forgotten ?? ForgottenDeletions()
        for number in 0..<settings.keyCount {
            let key = ModelKey(dataset: dataset, number: number)
            let record = try replicas[0].record(key)
            var tried = model.tried[key] ?? []
            var numbers = WriteModel.numbers(in: record?.value ?? [])
            var required = model.writes.filter { $0.key == key && $0.mustSurvive }
            if isMerging, dataset == 0 {
                // Whatever went from one into the other, nothing may be in neither.
                let other = ModelKey(dataset: 1, number: number)
                tried.formUnion(model.tried[other] ?? [])
                required += model.writes.filter {
                    $0.key == other && $0.mustSurvive
                }
                if try replicas[0].isVisible(1) {
                    let left = try replicas[0].record(other)?.value ?? []
                    numbers += WriteModel.numbers(in: left)
                }
            }
            guard Set(numbers).isSubset(of: tried) else {
                return fail(.inventedValue, "\(key): \(Self.text(record))")
            }
            switch settings.policy {
            case .lastWriterWins where settings.traits.contains(.clocks):
                checkSeen(key, record, required, forgotten)
            case .lastWriterWins where model.hasFarClock: continue
            case .lastWriterWins: checkLast(key, record, required, forgotten)
            case .union, .autoMerge, .mergeable, .stopping, .leaving:
                let standing = Set(numbers)
                let lost = required.first {
                    !standing.contains($0.number)
                        && !model.isOverwrittenUnread($0, by: standing)
                }
                if let lost {
                    fail(.lostWrite, "\(key): write \(lost.number) of \(lost.replica)")
                }
            case .keepLocal, .keepRemote: checkKept(key, record, required, forgotten)
            }
        }
    }

    /// Where clocks are far off, dates do not say which write must stand; what was seen does. What
    /// stands has seen every write that must not be lost, and is none that somebody who had seen it
    /// has overwritten. But for two things: what was forgotten need not have been seen by what came
    /// after; and a write that somebody's clock could not believe may lose even to what it had
    /// seen, where that had been joined with what it had not seen and could not be handed on
    /// otherwise. So may one that is dated before what was written anew for that.
    private func checkSeen(
        _ key: ModelKey, _ record: Record?, _ required: [ModelWrite],
        _ forgotten: ForgottenDeletions
    ) {
        // What is in doubt is written anew, as if it had seen less.
        guard isOrderly else { return }
        guard let record = recordThatHasSeenAll(key, record, required, forgotten) else { return }
        let earliest = replicas.map(\.earliestClock).min() ?? 0
        let believed = earliest + settings.clockAheadMax
        let isDeletion = record.value == nil
        // Which write it was that has expired its value does not say any more.
        if isDeletion, record.expiresAt != nil { return }
        // A deletion that was tried and not acknowledged may be the one.
        let acknowledged = Set(model.writes.map(\.number))
        if isDeletion, !(model.triedDeletions[key] ?? []).isSubset(of: acknowledged) { return }
        let number = WriteModel.numbers(in: record.value ?? []).first
        let standing = model.writes.filter {
            $0.key == key && $0.isDeletion == isDeletion && (isDeletion || $0.number == number)
        }
        guard !standing.isEmpty else { return }
        let overwriting = required.filter {
            $0.isDeletion != isDeletion || (!isDeletion && $0.number != number)
        }
        // Where somebody's clock could not believe a write that it has seen, it may have been
        // written anew, with the date of then ("Writes from the future" in `ConflictHandling`).
        let ofKey = model.writes.filter { $0.key == key }
        let isAnew =
            !ofKey.contains { $0.version.dot == record.version.dot }
            && ofKey.contains {
                $0.version.time.milliseconds > believed
                    && record.version.vector.contains($0.version.dot)
            }
        for write in standing {
            let isOverwritten = overwriting.contains {
                $0.version.vector.contains(write.version.dot)
                    && $0.version.time.milliseconds <= believed
                    && !(isAnew && $0.version.time < record.version.time)
            }
            if !isOverwritten { return }
        }
        fail(
            isDeletion ? .lostWrite : .resurrection,
            "\(key): \(Self.text(record)), which was overwritten")
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
            if !isGone(latest), !isForgotten {
                fail(.lostWrite, "\(key): nothing in place of \(expected)")
            }
            return
        }
        let isOlder =
            record.version.dot != latest.version.dot && latest.version.isLater(than: record.version)
        guard isOlder else {
            // One dot, two values.
            // What neither of two could be shown to descend from is deleted under its dot.
            let isDisputed =
                record.version.time.isOutliving && record.isDeleted
                && model.deletedKeys.contains(key)
            let isSame =
                record.version.dot == latest.version.dot && !model.hasRolledBack && !isDisputed
            let value = WriteModel.numbers(in: record.value ?? [])
            if isSame, value != (isGone(latest) ? [] : [latest.number]) {
                fail(.lostWrite, "\(key): \(Self.text(record)) in place of \(expected)")
            }
            return
        }
        let isBack = isGone(latest) && record.value != nil
        fail(
            isBack ? .resurrection : .lostWrite,
            "\(key): \(Self.text(record)) in place of \(expected)")
    }

    static func text(_ record: Record?) -> String {
        guard let record else { return "nothing" }
        let value = record.value.map { "\(WriteModel.numbers(in: $0))" } ?? "a deletion"
        let expiry = record.expiresAt.map { ", expires at \($0)" } ?? ""
        return "\(value) \(record.version.dot) \(record.version.time)\(expiry)"
    }

    private static func text(_ knowledge: DatasetKnowledge?) -> String {
        knowledge.map { "\($0.vector)" } ?? "nothing"
    }
}
