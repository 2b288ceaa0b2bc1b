import TestSupport
import Tidemark

// How replicas die, come back, and go back in time.

extension World {
    func open(_ replica: SimulatedReplica) {
        replica.setClock(now: time.now)
        attempt("opening \(replica.index)") { () throws(StoreError) in try replica.open() }
        note("\(replica.index): opened as \(replica.lastID.map { "\($0)" } ?? "nothing")")
        checkJournal(replica.index)
        replica.openCount += 1
        guard replica.isUp else { return }
        attempt("looking for datasets") { () throws(StoreError) in
            // The large dataset is none of those that are counted.
            let last = settings.largeDataset ?? settings.datasetCount - 1
            for dataset in 0...last where try replica.knowledge(dataset) == nil {
                replica.lackedAt[SimulatedReplica.name(dataset)] = replica.openCount
            }
        }
    }

    // MARK: - Ends

    /// Closed and opened again. What has to be cut short is cut short.
    func reopen(_ at: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        do throws(StoreError) {
            try store.close()
        } catch {
            if !replica.isDiskFull, replica.remains == nil {
                fail(.storeFailure, "closing \(at): \(error.code) \(error.message)")
            }
        }
        // The power may have failed while it was closing.
        guard replica.remains == nil else { return fallSilent(replica) }
        replica.store = nil
        replica.incarnation += 1
        model.markDurable(replica.unsynced)
        replica.unsynced = []
        replica.storage.observe(nil)
        open(replica)
    }

    /// - Parameter calls: to the disk that still succeed.
    func losePower(
        _ at: Int, afterCalls calls: Int, _ survival: Survival, _ seed: Seed, downFor: UInt64
    ) {
        let replica = replicas[at]
        guard replica.isUp else { return }
        replica.downFor = downFor
        replica.losesUnsynced = survival != .everything
        var random = SeededGenerator(seed)
        guard calls > 0 else {
            replica.remains = replica.storage.afterPowerLoss(survival, using: &random)
            return fallSilent(replica)
        }
        let storage = replica.storage
        let countdown = Countdown(calls, random)
        storage.observe { [unowned replica] _ in
            guard countdown.isOver(), replica.remains == nil, replica.storage === storage
            else { return }
            replica.remains = storage.afterPowerLoss(survival, using: &countdown.random)
        }
    }

    /// Buries a replica whose power failed, and has it come up again later.
    func fallSilent(_ replica: SimulatedReplica) {
        guard let remains = replica.remains else { return }
        // It may have been handed something in an exchange that has not come to its end. What is
        // on its way down can maybe not be read any more.
        for key in allKeys { try? noteHandedOver(replica, key) }
        crashCount += 1
        note("\(replica.index): the power fails")
        replica.storage.observe(nil)
        replica.storage = remains
        replica.remains = nil
        replica.store = nil
        replica.incarnation += 1
        if !replica.losesUnsynced { model.markDurable(replica.unsynced) }
        replica.unsynced = []
        replica.isDiskFull = false
        let incarnation = replica.incarnation
        time.schedule(after: replica.downFor) { [self] in
            guard replica.incarnation == incarnation, replica.store == nil else { return }
            open(replica)
        }
    }

    func fillDisk(_ at: Int, room: Int, for duration: UInt64) {
        let replica = replicas[at]
        guard replica.isUp, !replica.isDiskFull else { return }
        (replica.isDiskFull, replica.hasBeenFull) = (true, true)
        replica.storage.capacityBytes = replica.storage.fileBytes + room
        let incarnation = replica.incarnation
        time.schedule(after: duration) { [self] in
            if replica.incarnation == incarnation { emptyDisk(replica) }
        }
    }

    /// There is room again. A store that had met the end of it writes no more until it is opened
    /// again.
    func emptyDisk(_ replica: SimulatedReplica) {
        guard replica.isDiskFull else { return }
        replica.storage.capacityBytes = nil
        reopen(replica.index)
        replica.isDiskFull = false
    }

    // MARK: - Back in time

    func backUp(_ at: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store, !replica.isDiskFull else { return }
        do throws(StoreError) {
            try store.sync()
            try store.backup(to: "/backup")
        } catch {
            if replica.remains == nil {
                fail(.storeFailure, "backing up \(at): \(error.code) \(error.message)")
            }
            return
        }
        guard replica.remains == nil else { return }
        model.markDurable(replica.unsynced)
        replica.unsynced = []
        replica.hasBackup = true
        var random = SeededGenerator(Seed(time.now ^ UInt64(at)))
        replica.snapshot = (replica.storage.afterProcessEnd(using: &random), replica.path)
    }

    func restore(_ at: Int) {
        let replica = replicas[at]
        guard replica.hasBackup, replica.isUp, areAllUp, let store = replica.store else { return }
        restoreCount += 1
        model.copiedIDs.formUnion(replica.ids)
        let path = "/store\(restoreCount)"
        replica.storage.observe(nil)
        attempt("restoring \(at)") { () throws(StoreError) in
            try store.close()
            try Store.restore(
                from: "/backup", to: path, linksFiles: false, storage: replica.storage)
        }
        replica.path = path
        wentBack(replica)
    }

    func rollBack(_ at: Int, writes: Int, isWatched: Bool) {
        let replica = replicas[at]
        // Nothing of before may arrive after.
        pump(until: time.now + 3_000)
        guard let snapshot = replica.snapshot, replica.isUp, areAllUp else { return }
        var random = randomness(of: at)
        try? replica.store?.close()
        replica.storage.observe(nil)
        replica.path = snapshot.path
        if isWatched {
            replica.storage = snapshot.disk.afterProcessEnd(using: &random)
            model.hasRolledBack = true
            for other in replicas { other.mayRenew = true }
        } else {
            replica.storage = snapshot.disk.withCopiedFiles(using: &random)
            restoreCount += 1
            model.copiedIDs.formUnion(replica.ids)
        }
        wentBack(replica)
        if isWatched, isMerging { allowLossByMerging(replica) }
        for number in 0..<writes {
            // Only a store that wrote less than it lost can be told from one that lost nothing.
            guard !isWatched || lostCount(of: replica, 0) > 1 else { break }
            perform(
                .write(
                    at: at, dataset: 0, key: number % settings.keyCount, isDeletion: false,
                    isDurable: true, padding: 0))
        }
        if isWatched { meetAll(replica) }
    }

    /// Before anything else happens a replica that went back meets all others, and first whoever
    /// has seen most of what it lost.
    private func meetAll(_ replica: SimulatedReplica) {
        for other in replicas { other.storage.observe(nil) }
        let others = replicas.filter { $0 !== replica }.sorted { left, right in
            let counts = (seenCount(of: replica, by: left), seenCount(of: replica, by: right))
            return counts.0 != counts.1 ? counts.0 > counts.1 : left.index < right.index
        }
        for other in others {
            let wasCut = isCut(replica.index, other.index)
            join(replica.index, other.index)
            // A hub asks nobody, and nobody asks who keeps a part.
            let isHub = settings.topology == .star && replica.index == 0
            let isAsked = isHub || other.mayBePart
            let (from, to) = isAsked ? (other, replica) : (replica, other)
            for _ in 0..<5 {
                if case .success = exchangeNow(from: from.index, to: to.index) { break }
            }
            if wasCut { cut(replica.index, other.index) }
        }
    }

    func copy(_ from: Int, onto: Int) {
        let (original, target) = (replicas[from], replicas[onto])
        guard original.isUp, target.isUp, areAllUp, from != onto, !original.mayBePart,
            !target.mayBePart
        else { return }
        attempt("syncing \(from)") { () throws(StoreError) in try original.store?.sync() }
        model.markDurable(original.unsynced)
        original.unsynced = []
        var random = randomness(of: onto)
        try? target.store?.close()
        target.storage.observe(nil)
        target.path = original.path
        target.snapshot = nil
        target.storage = original.storage.withCopiedFiles(using: &random)
        target.inheritClock(of: original)
        restoreCount += 1
        model.copiedIDs.formUnion(original.ids)
        wentBack(target)
    }

    /// Of the disk that a replica gets now. Two disks of one moment draw different numbers, as two
    /// machines would.
    private func randomness(of replica: Int) -> SeededGenerator {
        SeededGenerator(Seed(time.now ^ UInt64(replica + 1) << 40))
    }

    private var areAllUp: Bool { replicas.allSatisfy { $0.isUp && !$0.isDiskFull } }

    /// After a store was put in the place of another: only what is anywhere still must survive.
    private func wentBack(_ replica: SimulatedReplica) {
        replica.store = nil
        replica.incarnation += 1
        replica.unsynced = []
        replica.hasBackup = replica.snapshot != nil
        (replica.moments, replica.bundledThrough) = ([], [:])
        open(replica)
        attempt("looking for what is left") { () throws(StoreError) in
            for other in replicas { try other.store?.sync() }
            // Also what is not durable yet: it becomes so where it is, which is nowhere.
            for (index, write) in model.writes.enumerated() {
                var isThere = false
                for other in replicas where !isThere {
                    guard let record = try other.record(write.key), has(record, write) else {
                        continue
                    }
                    isThere = true
                    if other.mayBePart {
                        isThere = try mayStay(record, at: other, write.key.dataset)
                    }
                }
                if !isThere { model.allowLoss(of: index) }
            }
        }
    }

    /// Whether a replica that may keep a part still has to hand a record over: it lets go of what a
    /// peer has had, whoever lost that since.
    private func mayStay(
        _ record: Record, at replica: SimulatedReplica, _ dataset: Int
    ) throws(StoreError) -> Bool {
        guard record.isDirty, let store = replica.store,
            let found = try store.existingDataset(SimulatedReplica.name(dataset))
        else { return false }
        return try record.syncCount > found.handedOver().through
    }

    /// A store that went back may move records before it meets anybody who could tell it so, and
    /// delete the dataset out of which they went. Each move is a write to that one, under the dot
    /// of one that was lost, and a deletion takes what stands under the dots that its maker had
    /// seen, whatever they name elsewhere: see *Stores that went back in time* in the article on
    /// the protocol. Of the dataset that takes the records in nothing may be lost.
    private func allowLossByMerging(_ replica: SimulatedReplica) {
        guard let own = replica.store?.replicaID else { return }
        attempt("looking for what merging may take") { () throws(StoreError) in
            let kept = try replica.knowledge(1)?.vector[own] ?? 0
            for (index, write) in model.writes.enumerated()
            where write.key.dataset == 1 && write.version.dot.replica == own
                && write.version.dot.counter > kept
            {
                model.allowLoss(of: index)
            }
        }
    }

    /// Whether a write is in a record, or was overwritten by it. A dot may name two writes after a
    /// store went back unnoticed, so that where values are united only what is in them tells.
    ///
    /// So it may if the store found out and conflicts wait: what it wrote meanwhile stays with it
    /// alone until they are settled ("Stores that went back in time" in the article on the
    /// protocol), and is nowhere if it goes back once more before that. What others have by that
    /// dot is the write that was lost at first.
    private func has(_ record: Record, _ write: ModelWrite) -> Bool {
        let mayNameTwo =
            settings.policy.leavesConflicts && model.isGivenUp(write.version.dot.replica)
        if mayNameTwo, settings.policy.isUnion, !write.isDeletion {
            return WriteModel.numbers(in: record.value ?? []).contains(write.number)
        }
        return record.version.vector.contains(write.version.dot)
            && record.version.time >= write.version.time
    }

    /// How many of a replica's writes to a dataset another one has seen that it has not itself.
    private func lostCount(of replica: SimulatedReplica, _ dataset: Int) -> UInt64 {
        guard let own = replica.store?.replicaID else { return 0 }
        var most: UInt64 = 0
        attempt("comparing vectors") { () throws(StoreError) in
            let mine = try replica.knowledge(dataset)?.vector[own] ?? 0
            for other in replicas where other !== replica {
                let theirs = try other.knowledge(dataset)?.vector[own] ?? 0
                if theirs > mine { most = max(most, theirs - mine) }
            }
        }
        return most
    }

    /// How many writes to the first dataset, the one that is written to after going back.
    private func seenCount(of replica: SimulatedReplica, by other: SimulatedReplica) -> UInt64 {
        guard let own = replica.store?.replicaID else { return 0 }
        var count: UInt64 = 0
        attempt("comparing vectors") { () throws(StoreError) in
            count = try other.knowledge(0)?.vector[own] ?? 0
        }
        return count
    }
}

/// Counts calls to a disk down. Only the thread of the simulation uses it.
private final class Countdown: @unchecked Sendable {
    // Unchecked: see above.
    private var left: Int
    var random: SeededGenerator

    init(_ count: Int, _ random: SeededGenerator) {
        left = count
        self.random = random
    }

    func isOver() -> Bool {
        left -= 1
        return left == 0
    }
}
