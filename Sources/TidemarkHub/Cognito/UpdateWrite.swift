import Tidemark

/// Carries a plan out: the records, what is kept beside them, and what follows from them for
/// others, in one batch.
///
/// A crash leaves all of it or nothing. Before the batch only the dataset itself may have been
/// made, which is then there without a record.
struct UpdateWrite {
    let plan: UpdatePlan
    let request: UpdateRequest
    let limits: HubLimits
    let books: SyncBooks
    let sink: any ChangeSink
    let store: Store

    /// - Throws: `limitExceeded`, `notAuthorized`; a `StoreError` with `transactionConflict` if the
    ///   dataset is not where the plan has it.
    func run() throws -> [UInt8] {
        let context = request.context
        let found = try store.existingDataset(request.storeName)
        let totals = try checkedTotals(of: found)
        let dataset =
            try found
            ?? books.dataset(context.dataset, of: context.identity, limits, in: store)
        if found == nil || plan.position == 0 { try books.checkInUse(context.identity, in: store) }
        let knowledge = try dataset.knowledge()
        guard knowledge.syncCount.rawValue == plan.position else {
            throw StoreError(
                .transactionConflict, "the dataset has moved on; look at it again")
        }
        var facts = try books.facts(of: request.storeName, at: knowledge, in: store)
        if !facts.hasPeer { try CognitoPeer.register(in: dataset) }
        try noteCall(in: &facts.map, dataset)
        let count = facts.map.count(at: plan.position + UInt64(plan.writes.count))
        let batch = try batch(into: dataset, facts.map, count: count)
        let expected = (dataset: dataset, count: SyncCount(rawValue: plan.position))
        try store.write(batch, expecting: [expected])
        sink.committed(count: count, context)
        let times = try plan.writes.map { write in
            try dataset.storedVersion(of: write.key)?.version.time.milliseconds ?? 0
        }
        remember(facts, totals, last: times.last ?? 0)
        return try answer(count, times, dataset, facts.map)
    }

    /// How much the dataset will hold.
    ///
    /// - Throws: `limitExceeded`.
    private func checkedTotals(of dataset: Dataset?) throws -> DatasetTotals {
        var former = DatasetTotals()
        if let dataset {
            var facts = try books.facts(
                of: request.storeName, at: try dataset.knowledge(), in: store)
            former = try books.totals(of: dataset, &facts)
        }
        var totals = former
        for write in plan.writes {
            totals.replace(
                try dataset?.recordOrTombstone(of: write.key), by: write.value, key: write.key)
        }
        try totals.check(after: former, limits)
        return totals
    }

    /// A call of one record is one step in both counts, and needs no note.
    private func noteCall(in map: inout CountMap, _ dataset: Dataset) throws(StoreError) {
        guard plan.writes.count > 1 else { return }
        let anchors = map.anchors.count
        // Not each time, since records that are never written again may need more of them.
        if anchors >= CountMap.anchorsKeptMax, anchors.isMultiple(of: CountMap.anchorsKeptMax / 2) {
            map.prune(keeping: try placesToKeep(in: dataset))
        }
        map.noteCall(after: plan.position, size: UInt64(plan.writes.count))
    }

    /// Places in the store's order of change whose counts clients may have: those of all records
    /// and tombstones, and the one behind which all deletions can be told, which is mostly that of
    /// the last deletion of the dataset itself. O(records).
    private func placesToKeep(in dataset: Dataset) throws(StoreError) -> [UInt64] {
        var places = [try dataset.forgottenThrough().rawValue]
        let cursor = try dataset.changes(since: .zero)
        while let record = try cursor.next() { places.append(record.syncCount.rawValue) }
        return places.sorted()
    }

    private func batch(
        into dataset: Dataset, _ map: CountMap, count: UInt64
    ) throws -> WriteBatch {
        let sheet = Sheet(of: request.storeName, in: try store.dataset(Sheet.datasetName))
        var batch = WriteBatch()
        var changes: [AppliedChange] = []
        for write in plan.writes {
            if let value = write.value {
                batch.put(value, for: write.key, in: dataset)
            } else {
                batch.delete(write.key, in: dataset)
            }
            changes.append(
                AppliedChange(
                    key: String(decoding: write.key, as: UTF8.self),
                    value: write.value.map { String(decoding: $0, as: UTF8.self) },
                    position: plan.position + UInt64(changes.count) + 1,
                    deviceMilliseconds: write.deviceMilliseconds))
        }
        for (write, change) in zip(plan.writes, changes) {
            let entry = SheetEntry(
                position: change.position, lastModifiedBy: request.author,
                deviceMilliseconds: write.deviceMilliseconds, mark: request.mark)
            batch.put(entry.encoded, for: sheet.entryKey(of: write.key), in: sheet.home)
        }
        if plan.writes.count > 1 { batch.put(map.encoded, for: sheet.mapKey, in: sheet.home) }
        try sink.append(to: &batch, changes, count: count, request.context)
        return batch
    }

    /// The next call need read nothing of it again.
    private func remember(_ facts: DatasetFacts, _ totals: DatasetTotals, last: UInt64) {
        var next = DatasetFacts(
            incarnation: facts.incarnation, lifecycle: facts.lifecycle,
            position: plan.position + UInt64(plan.writes.count), map: facts.map)
        next.totals = totals
        next.hasPeer = true
        next.isDurable = true
        next.last = DatasetFacts.LastChange(milliseconds: last, author: request.author)
        books.cache.keep(next, of: request.storeName)
    }

    /// All records that were written, and of patches that came to nothing what is there instead:
    /// some clients wait for ever for a record that they sent and do not get back.
    private func answer(
        _ count: UInt64, _ times: [UInt64], _ dataset: Dataset, _ map: CountMap
    ) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "Records")
        for (write, time) in zip(plan.writes, times) {
            let modified = APIDate(clampingMilliseconds: time)
            ToldRecord(
                key: write.key, value: write.value, syncCount: count, lastModified: modified,
                lastModifiedBy: request.author,
                deviceLastModified: write.deviceMilliseconds.map {
                    APIDate(clampingMilliseconds: $0)
                } ?? modified
            ).write(to: &answer)
        }
        let written = Set(plan.writes.map(\.key))
        let others = request.patches.filter { !written.contains($0.key) }
        if !others.isEmpty {
            let sheet = try Sheet(of: request.storeName, in: store)
            let teller = RecordTeller(request.context.identity, map, store)
            for patch in others { try teller.tell(patch.key, in: dataset, sheet, to: &answer) }
        }
        answer.close("]")
        answer.close("}")
        return answer.bytes
    }
}
