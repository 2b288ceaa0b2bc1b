import Tidemark

// What is read of the past: a moment of a dataset that a replica could once be read at holds for
// ever what it held then, or is refused with `historyExpired`, whatever is merged, taken over,
// swept or lost with the power since.

/// What a dataset held on a replica when a change was its last.
struct PastMoment {
    let dataset: Int
    let syncCount: SyncCount
    /// By the numbers of keys; a key without a value is not in it.
    let values: [Int: [UInt8]]
}

extension SimulatedReplica {
    /// The moments that are remembered at most: of more the earliest is let go.
    private static let momentsMax = 12

    func remember(_ moment: PastMoment) {
        moments.append(moment)
        if moments.count > Self.momentsMax { moments.removeFirst() }
    }
}

extension World {
    /// Notes what a dataset holds now. Durable, or a loss of power would take the moment with it.
    func remember(_ at: Int, _ dataset: Int) {
        let replica = replicas[at]
        guard settings.traits.contains(.past), replica.isUp, let store = replica.store else {
            return
        }
        do throws(StoreError) {
            guard let found = try store.existingDataset(SimulatedReplica.name(dataset)) else {
                return
            }
            try store.sync()
            guard replica.remains == nil else { return }
            model.markDurable(replica.unsynced)
            replica.unsynced = []
            var values: [Int: [UInt8]] = [:]
            for number in 0..<settings.keyCount {
                let record = try found.storedRecord(for: SimulatedReplica.key(number))
                if let value = record?.value { values[number] = value }
            }
            let count = try found.knowledge().syncCount
            replica.remember(PastMoment(dataset: dataset, syncCount: count, values: values))
            note("\(at): remembers d\(dataset) at \(count)")
        } catch {
            failed(error, "remembering a moment", at)
        }
    }

    /// Reads every remembered moment of a replica once more.
    func recall(_ at: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        var kept: [PastMoment] = []
        for moment in replica.moments where violation == nil {
            do throws(StoreError) {
                guard
                    let found = try store.existingDataset(SimulatedReplica.name(moment.dataset))
                else { continue }
                try check(moment, found, at)
                kept.append(moment)
            } catch {
                // Of an expired moment nothing can come back, so it is not asked for again.
                if error.code != .historyExpired {
                    kept.append(moment)
                    failed(error, "reading d\(moment.dataset) at \(moment.syncCount)", at)
                }
            }
        }
        replica.moments = kept
    }

    private func check(
        _ moment: PastMoment, _ dataset: Dataset, _ at: Int
    ) throws(StoreError) {
        guard let store = replicas[at].store else { return }
        let snapshot = try store.snapshot(at: moment.syncCount, of: dataset)
        defer { snapshot.close() }
        for number in 0..<settings.keyCount {
            let value = try snapshot.get(SimulatedReplica.key(number), in: dataset)
            guard value == moment.values[number] else {
                let texts = [value, moment.values[number]].map { value in
                    value.map { "\(WriteModel.numbers(in: $0))" } ?? "nothing"
                }
                return fail(
                    .pastChanged,
                    "d\(moment.dataset)/k\(number) at \(moment.syncCount) of \(at): \(texts[0]) "
                        + "in place of \(texts[1])")
            }
        }
        pastReadCount += 1
    }
}
