import TestSupport
import Tidemark

extension World {
    func perform(_ action: Action) {
        switch action {
        case .write(let at, let dataset, let key, let isDeletion, let isDurable, let padding):
            write(
                at, ModelKey(dataset: dataset, number: key), isDeletion: isDeletion,
                isDurable: isDurable, padding: padding)
        case .batch(let at, let dataset, let keys):
            batch(at, keys.map { ModelKey(dataset: dataset, number: $0) })
        case .read(let at, let dataset, let key):
            read(at, ModelKey(dataset: dataset, number: key))
        case .exchange(let from, let to, let records, let weather):
            startExchange(from: from, to: to, pageRecordsMax: records, weather)
        case .compact(let at): compact(at)
        case .reopen(let at): if !replicas[at].isDiskFull { reopen(at) }
        case .powerLoss(let at, let calls, let percent, let seed, let downFor):
            losePower(
                at, afterCalls: calls, percent == 100 ? .everything : .chance(percent: percent),
                Seed(seed), downFor: downFor)
        case .kill(let at, let downFor):
            // Each time with other random numbers: no process draws the ids of an earlier one.
            if replicas[at].isUp { killCount += 1 }
            losePower(at, afterCalls: 0, .everything, Seed(killCount), downFor: downFor)
        case .backUp(let at): backUp(at)
        case .restore(let at): restore(at)
        case .rollBack(let at, let writes, let isWatched):
            rollBack(at, writes: writes, isWatched: isWatched)
        case .copy(let from, let onto): copy(from, onto: onto)
        case .setClock(let at, let by):
            replicas[at].clockOffset += by
            if by > Int64(settings.clockAheadMax) { model.hasFarClock = true }
        case .cut(let one, let other): cut(one, other)
        case .join(let one, let other): join(one, other)
        case .fillDisk(let at, let room, let duration): fillDisk(at, room: room, for: duration)
        case .slowDown(let at, let milliseconds): replicas[at].slowness = milliseconds
        case .deleteDataset(let at, let dataset): deleteDataset(at, dataset)
        case .forget(let one, let other):
            forgetCheckpoint(of: other, at: one)
            forgetCheckpoint(of: one, at: other)
        case .retire(let at, let peer): retire(at, peer)
        case .setScope(let at, let dataset, let scope): setScope(at, dataset, scope)
        case .decideHeld(let at, let dataset, let isReleased):
            decideHeld(at, dataset, isReleased: isReleased)
        case .settle(let at, let dataset): settle(at, dataset)
        case .noteMerged(let at): noteMerged(at)
        case .fillLarge(let at): fillLarge(at)
        case .writeExpiring(let at, let dataset, let key, let life):
            write(
                at, ModelKey(dataset: dataset, number: key), isDeletion: false, isDurable: false,
                padding: 0, life: life)
        case .sweep(let at): sweep(at)
        case .remember(let at, let dataset): remember(at, dataset)
        case .recall(let at): recall(at)
        case .carry(let carriage): carry(carriage)
        }
    }

    // MARK: - Readers and writers

    /// - Parameter life: milliseconds after which it expires; nil if it does not.
    private func write(
        _ at: Int, _ key: ModelKey, isDeletion: Bool, isDurable: Bool, padding: Int,
        life: UInt64? = nil
    ) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        let number = model.begin(key, isDeletion: isDeletion, expires: life != nil)
        let expiresAt = expiry(after: life, at: replica)
        let name = SimulatedReplica.key(key.number)
        var over = Unread()
        do throws(StoreError) {
            over = try unread(at, key)
            let dataset = try store.dataset(SimulatedReplica.name(key.dataset))
            let durability: Durability = isDurable ? .disk : .process
            if isDeletion {
                _ = try dataset.delete(name, durability: durability)
            } else {
                var numbers = [number]
                if settings.policy.isUnion, let present = try dataset.get(name) {
                    numbers = (WriteModel.numbers(in: present) + numbers).sorted()
                }
                let value = WriteModel.value(of: numbers, padding: padding, settings.form)
                if let expiresAt {
                    _ = try dataset.put(
                        value, for: name, expiresAt: expiresAt, durability: durability)
                } else {
                    _ = try dataset.put(value, for: name, durability: durability)
                }
            }
        } catch {
            model.noteUnheard(number, beside: over.numbersIfUnheard)
            return failed(error, "writing", at)
        }
        acknowledge(
            at, key, number, isDeletion: isDeletion, isDurable: isDurable, over: over,
            expiresAt: expiresAt)
    }

    private func batch(_ at: Int, _ keys: [ModelKey]) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        let numbers = keys.map { model.begin($0) }
        var over: [Unread] = []
        do throws(StoreError) {
            var batch = WriteBatch()
            for (key, number) in zip(keys, numbers) {
                over.append(try unread(at, key))
                let dataset = try store.dataset(SimulatedReplica.name(key.dataset))
                let name = SimulatedReplica.key(key.number)
                var all = [number]
                if settings.policy.isUnion, let present = try dataset.get(name) {
                    all = (WriteModel.numbers(in: present) + all).sorted()
                }
                batch.put(
                    WriteModel.value(of: all, padding: 0, settings.form), for: name, in: dataset)
            }
            try store.write(batch, durability: .disk)
        } catch {
            for (number, over) in zip(numbers, over) {
                model.noteUnheard(number, beside: over.numbersIfUnheard)
            }
            return failed(error, "writing a batch", at)
        }
        for (index, key) in keys.enumerated() {
            acknowledge(
                at, key, numbers[index], isDeletion: false, isDurable: true, over: over[index])
        }
    }

    /// The store has said that a write was done: it must be there for readers at once, and for
    /// good if that was promised.
    private func acknowledge(
        _ at: Int, _ key: ModelKey, _ number: Int, isDeletion: Bool, isDurable: Bool,
        over unread: Unread, expiresAt: UInt64? = nil
    ) {
        let replica = replicas[at]
        // The power had failed by then, so that nobody heard it.
        guard replica.remains == nil else {
            return model.noteUnheard(number, beside: unread.numbersIfUnheard)
        }
        attempt("reading at \(at)") { () throws(StoreError) in
            guard let record = try replica.record(key) else {
                return fail(.staleRead, "\(key) at \(at): a write is not there")
            }
            let isThere =
                isDeletion
                ? record.value == nil
                : WriteModel.numbers(in: record.value ?? []).contains(number)
            guard isThere else {
                return fail(.staleRead, "\(key) at \(at): a reader misses write \(number)")
            }
            note("\(at): write \(number) \(record.version.dot) \(record.version.time)")
            let over = try overwritten(at, unread, under: key, by: record.version)
            let index = model.acknowledge(
                ModelWrite(
                    number: number, key: key, isDeletion: isDeletion, replica: at,
                    version: record.version, mustSurvive: isDurable, unread: over,
                    expiresAt: expiresAt))
            if isDurable {
                model.markDurable(replica.unsynced)
                replica.unsynced = []
            } else {
                replica.unsynced.append(index)
            }
            if isDeletion || expiresAt != nil, settings.largeDataset != nil,
                try replica.isAlone(with: key.dataset)
            {
                replica.loneDeletions[key] = record.version
            }
            checkClock(of: record.version, at)
        }
        read(at, key)
    }

    /// Clocks that are off by minutes are put up with; nobody may be years ahead because a peer is.
    private func checkClock(of version: Version, _ at: Int) {
        let replica = replicas[at]
        let most =
            max(replica.latestClock, SimulatedReplica.epoch) + settings.clockAheadMax
        if version.time.milliseconds > most {
            fail(.clockDragged, "a write at \(at) is dated \(version.time)")
        }
    }

    func read(_ at: Int, _ key: ModelKey) {
        let replica = replicas[at]
        guard replica.isUp else { return }
        attempt("reading at \(at)") { () throws(StoreError) in
            try checkExpiry(key, replica)
            // Of a dataset that was deleted older versions may come back as the survivors.
            guard !model.deletedDatasets.contains(key.dataset),
                let record = try replica.record(key)
            else { return }
            guard try !mayLeave(key, replica) else {
                replica.lastSeen[key] = nil
                return
            }
            if let seen = replica.lastSeen[key], isStale(record.version, after: seen) {
                fail(
                    .staleRead,
                    "\(key) at \(at): \(record.version.dot) \(record.version.time) after "
                        + "\(seen.dot) \(seen.time)")
            }
            replica.lastSeen[key] = record.version
        }
    }

    /// Where clocks agree, an older version is one with an earlier date. Where they do not, a write
    /// may be dated earlier than what it has seen, and it is one that the newer has seen, unless
    /// that was joined with the newer one, too. A store that went back has versions of which that
    /// cannot be told.
    private func isStale(_ version: Version, after seen: Version) -> Bool {
        guard model.hasFarClock else { return version.time < seen.time }
        return isOrderly && version.dot != seen.dot && seen.vector.contains(version.dot)
            && !version.vector.contains(seen.dot)
    }

    /// Whether no store ever went back, by whatever means.
    var isOrderly: Bool { !model.hasRolledBack && restoreCount == 0 }

    /// A store that refuses has a reason that the simulation gave it.
    func failed(_ error: StoreError, _ what: String, _ at: Int) {
        let replica = replicas[at]
        note("\(at): \(what) failed: \(error.code)")
        guard replica.remains == nil, !replica.isDiskFull else { return }
        fail(.storeFailure, "\(what) at \(at): \(error.code) \(error.message)")
    }

    // MARK: - Maintenance

    private func compact(_ at: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        var buried: [(ModelKey, Version)] = []
        do throws(StoreError) {
            for key in allKeys {
                if let record = try replica.record(key), record.isDeleted {
                    buried.append((key, record.version))
                }
            }
            try store.compact()
            for (key, version) in buried where try replica.record(key) == nil {
                try forgotten(key, version, at)
            }
        } catch {
            failed(error, "compacting", at)
        }
    }

    /// Sealing forgets deletions, too, as compaction does (the article on compaction: nobody else
    /// has ever had a part in the dataset). An exchange of a large dataset seals all that the logs
    /// of both sides hold, of other datasets, too, at any moment.
    func noteLoneDeletions() {
        for replica in replicas where replica.isUp && !replica.loneDeletions.isEmpty {
            attempt("reading \(replica.index)") { () throws(StoreError) in
                for (key, version) in replica.loneDeletions.sorted(by: { $0.key < $1.key }) {
                    guard try replica.isAlone(with: key.dataset) else {
                        replica.loneDeletions[key] = nil
                        continue
                    }
                    guard try replica.record(key) == nil else { continue }
                    try forgotten(key, version, replica.index)
                }
            }
        }
    }

    /// As long as nobody else has ever had a part in a dataset, compaction may forget a deletion
    /// without a note of it, with all that it deleted: the store cannot know that somebody has an
    /// older write to the key, which then stands as if nothing had been here. That and no more is
    /// allowed for. Whoever has peers must note what it forgets, and whoever has seen a write of
    /// this store may bring back what was deleted.
    private func forgotten(
        _ key: ModelKey, _ version: Version, _ at: Int
    ) throws(StoreError) {
        note("\(at): \(key) forgot \(version.dot)")
        let replica = replicas[at]
        replica.loneDeletions[key] = nil
        guard try replica.isAlone(with: key.dataset) else { return }
        // Whoever has writes of its by a copy of its files alone is nobody that it has met.
        let ids = replica.ids.filter { !model.copiedIDs.contains($0) }
        for other in replicas where other.index != at {
            guard let knowledge = try other.knowledge(key.dataset) else { continue }
            if ids.contains(where: { knowledge.vector[$0] > 0 }) { return }
        }
        model.forgottenAlone.insert(key)
        for (index, write) in model.writes.enumerated()
        where write.key == key && version.vector.contains(write.version.dot) {
            model.allowLoss(of: index)
        }
        // For a reader the key was never there.
        replica.lastSeen[key] = nil
    }

    /// Gives a peer up, which may well come again.
    private func retire(_ at: Int, _ peer: Int) {
        guard at != peer, replicas[at].isUp, let store = replicas[at].store,
            let id = replicas[peer].lastID
        else { return }
        do throws(StoreError) {
            let count = try store.retire(id)
            note("\(at): retired \(peer) in \(count) datasets")
        } catch {
            failed(error, "retiring a peer", at)
        }
    }

    private func deleteDataset(_ at: Int, _ dataset: Int) {
        guard replicas[at].isUp, let store = replicas[at].store else { return }
        model.deletedDatasets.insert(dataset)
        do throws(StoreError) {
            try store.deleteDataset(SimulatedReplica.name(dataset))
        } catch {
            failed(error, "deleting a dataset", at)
        }
    }

    /// Not after a disk went back in time: then what was known to be exchanged decides what of the
    /// lost writes must come back.
    private func forgetCheckpoint(of peer: Int, at: Int) {
        guard !model.hasRolledBack, !replicas[at].mayBePart, !replicas[peer].mayBePart,
            replicas[at].isUp, let store = replicas[at].store,
            let id = replicas[peer].store?.replicaID ?? replicas[peer].lastID
        else { return }
        do throws(StoreError) {
            for dataset in 0..<settings.datasetCount {
                let name = SimulatedReplica.name(dataset)
                guard let found = try store.datasetForSync(name, creating: false),
                    try found.checkpoint(for: id) != PeerCheckpoint()
                else { continue }
                var batch = ReplicationBatch()
                batch.checkpoint = (id, PeerCheckpoint())
                _ = try found.replicate(batch)
            }
        } catch {
            failed(error, "forgetting a checkpoint", at)
        }
    }
}
