import Tidemark
import TidemarkSync

// UpdateRecords. A call is looked at and carried out on one thread, without a wait in between;
// where a trigger or a strategy is asked, which takes time, on several, and then only if the
// dataset is still at the count by which all was decided. A batch is applied at that count alone,
// so that no check made before can be wrong by the time of the write.

extension RecordOperations {
    /// What an attempt came to.
    private enum Attempt: Sendable {
        case answered([UInt8])
        case conflicts([RecordConflict])
    }

    /// An update that goes by a trigger before it is written.
    private struct Triggered: Sendable {
        var plan: UpdatePlan?
        var conflicts: [RecordConflict] = []
        /// All records, as they would be.
        var records: [TriggerRecord] = []
        /// Set if there is nothing to be written.
        var answer: [UInt8]?
    }

    func update(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let request = try UpdateRequest(call, limits, clock, secrets)
        if isTriggered(request) { return try await updateTriggered(request) }
        let first = try await threads.write { store in
            try attempt(request, decisions: [:], in: store)
        }
        switch first {
        case .answered(let bytes): return bytes
        case .conflicts(let conflicts):
            let decisions = try await decisions(on: conflicts, request.context)
            let second = try await threads.write { store in
                try attempt(request, decisions: decisions, in: store)
            }
            guard case .answered(let bytes) = second else { throw UpdateComparison.changed }
            return bytes
        }
    }

    /// A call with the credentials of a developer passes by the trigger.
    private func isTriggered(_ request: UpdateRequest) -> Bool {
        guard case .identity = request.context.principal else { return false }
        return !request.patches.isEmpty && trigger.isNeeded(request.context)
    }

    private func decisions(
        on conflicts: [RecordConflict], _ context: UpdateContext
    ) async throws(APIFailure) -> [[UInt8]: ConflictDecision] {
        var decisions: [[UInt8]: ConflictDecision] = [:]
        let end = clock.now() + Self.decisionsMillisecondsMax
        for conflict in conflicts {
            guard clock.now() < end else {
                throw APIFailure(
                    .invalidTriggerOutput,
                    "the conflicts of the call take too long to be settled; send fewer records")
            }
            let decision = try await resolver.decision(conflict, context)
            if case .put(let text) = decision {
                guard RecordPatch.fits(text, 0...max(0, limits.recordValueMax)) else {
                    throw APIFailure(
                        .limitExceeded,
                        "the merged value of \(conflict.key) is longer than a value may be")
                }
            }
            decisions[Array(conflict.key.utf8)] = decision
        }
        return decisions
    }

    /// For all conflicts of a call, each of which may take 5 seconds: else a call with many of them
    /// would hold what it holds for hours.
    private static let decisionsMillisecondsMax: UInt64 = 30_000

    // MARK: - On a thread

    private func attempt(
        _ request: UpdateRequest, decisions: [[UInt8]: ConflictDecision], in store: Store
    ) throws -> Attempt {
        for _ in 0..<Self.attemptsMax {
            switch try look(at: request, decisions, in: store) {
            case .repeated:
                return .answered(try answerAsIs(request, in: store))
            case .conflicts(let conflicts):
                return .conflicts(conflicts)
            case .plan(let plan):
                guard let answer = try carryOut(plan, request, in: store) else { continue }
                return .answered(answer)
            }
        }
        throw UpdateComparison.changed
    }

    /// Somebody else was faster: then the next look finds out that it is no use, or that it was the
    /// very same update.
    private static let attemptsMax = 3

    /// - Returns: nil if the dataset has moved on since the plan was made. Nothing is written then.
    private func carryOut(
        _ plan: UpdatePlan, _ request: UpdateRequest, in store: Store
    ) throws -> [UInt8]? {
        guard !plan.writes.isEmpty else { return try answerAsIs(request, in: store) }
        let write = UpdateWrite(
            plan: plan, request: request, limits: limits, books: books, sink: sink, store: store)
        do {
            return try write.run()
        } catch let error as StoreError where Self.isOvertaken(error) {
            return nil
        }
    }

    /// Whether somebody else has written to the dataset meanwhile, or deleted it.
    private static func isOvertaken(_ error: StoreError) -> Bool {
        error.code == .transactionConflict || error.code == .datasetNotFound
    }

    private func look(
        at request: UpdateRequest, _ decisions: [[UInt8]: ConflictDecision], in store: Store
    ) throws -> UpdateFinding {
        for _ in 0..<Self.attemptsMax {
            do {
                return try finding(on: request, decisions, in: store)
            } catch let error as StoreError where Self.isOvertaken(error) {
                continue
            }
        }
        throw UpdateComparison.changed
    }

    private func finding(
        on request: UpdateRequest, _ decisions: [[UInt8]: ConflictDecision], in store: Store
    ) throws -> UpdateFinding {
        let dataset = try store.existingDataset(request.storeName)
        // The count of a dataset that was deleted goes on when it is made again.
        let known = try dataset ?? store.datasetForSync(request.storeName, creating: false)
        guard let known else {
            return try UpdateComparison(
                request: request, position: 0, map: CountMap(),
                present: request.patches.map { _ in nil }, decisions: decisions,
                ancestor: { _, _ in nil }, isOfCall: { _ in false }
            ).finding()
        }
        let knowledge = try known.knowledge()
        let facts = try books.facts(of: request.storeName, at: knowledge, in: store)
        let present = try request.patches.map { patch in
            try dataset?.recordOrTombstone(of: patch.key)
        }
        let comparison = UpdateComparison(
            request: request, position: facts.position, map: facts.map, present: present,
            decisions: decisions,
            ancestor: { record, patch in
                try Self.ancestor(of: record, patch, in: known, facts.map)
            },
            isOfCall: { record in try Self.isWritten(record, by: request, in: store) })
        return try comparison.finding()
    }

    /// The version that a client knew, if it is kept still. Only behind the last call of several
    /// records is it sure which count an earlier version had.
    private static func ancestor(
        of record: Record, _ patch: RecordPatch, in dataset: Dataset, _ map: CountMap
    ) throws(StoreError) -> Record? {
        let sure = map.anchors.last?.start ?? 0
        let versions = try dataset.storedVersions(of: record.key, limit: historyVersionsMax)
        return versions.first { version in
            version.syncCount.rawValue > sure && patch.count > 0
                && map.count(at: version.syncCount.rawValue) == patch.count
        }
    }

    /// Versions of a key among which the client's is looked for.
    private static let historyVersionsMax = 64

    /// Whether a record was written by the call when it came before.
    private static func isWritten(
        _ record: Record, by request: UpdateRequest, in store: Store
    ) throws(StoreError) -> Bool {
        try Sheet(of: request.storeName, in: store)?.entry(of: record)?.mark == request.mark
    }

    /// Tells the records of all patches as they are, when nothing is to be written, and before them
    /// all that the call has written when it came before, those of a trigger too.
    ///
    /// The client takes it for written, so it must be as durable as a write, which others may see
    /// before it is: whoever comes again while the disk is slow, or has failed, waits for it, too.
    private func answerAsIs(_ request: UpdateRequest, in store: Store) throws -> [UInt8] {
        if !request.patches.isEmpty { try store.acknowledgePresent() }
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "Records")
        if let dataset = try store.existingDataset(request.storeName) {
            let facts = try books.facts(
                of: request.storeName, at: try dataset.knowledge(), in: store)
            let sheet = try Sheet(of: request.storeName, in: store)
            let teller = RecordTeller(request.context.identity, facts.map, store)
            let written = try Self.keysWritten(by: request, in: dataset)
            let told = Set(written)
            let others = request.patches.map(\.key).filter { !told.contains($0) }
            for key in written + others {
                try teller.tell(key, in: dataset, sheet, to: &answer)
            }
        }
        answer.close("]")
        answer.close("}")
        return answer.bytes
    }

    /// Keys of what the call has written when it came before, in the order in which it was; none if
    /// it did not. They are the first that have changed since the listing, so nothing else is read.
    private static func keysWritten(
        by request: UpdateRequest, in dataset: Dataset
    ) throws(StoreError) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        do throws(StoreError) {
            let since = SyncCount(rawValue: request.session.position)
            let cursor = try dataset.changes(since: since)
            while let record = try cursor.next(), !record.isDropped,
                try isWritten(record, by: request, in: dataset.store)
            {
                keys.append(record.key)
            }
        } catch {
            // Deletions since then are forgotten: those of the patches are told all the same.
            guard error.code == .changesExpired else { throw error }
        }
        return keys
    }

    // MARK: - With a trigger

    private func updateTriggered(
        _ request: UpdateRequest
    ) async throws(APIFailure) -> [UInt8] {
        var looked = try await threads.read { store in
            try lookForTrigger(request, [:], in: store)
        }
        if !looked.conflicts.isEmpty {
            let decisions = try await decisions(on: looked.conflicts, request.context)
            looked = try await threads.read { store in
                try lookForTrigger(request, decisions, in: store)
            }
        }
        if let answer = looked.answer { return answer }
        guard let asked = looked.plan else { throw UpdateComparison.changed }
        let changed = try await trigger.changed(looked.records, request.context)
        let decided =
            if let changed { try plan(of: changed, request, at: asked.position) } else { asked }
        let answer = try await threads.write { store -> [UInt8]? in
            if let answer = try carryOut(decided, request, in: store) { return answer }
            // Somebody else was faster, perhaps this same client by another connection.
            guard case .repeated = try look(at: request, [:], in: store) else { return nil }
            return try answerAsIs(request, in: store)
        }
        guard let answer else { throw UpdateComparison.changed }
        return answer
    }

    private func lookForTrigger(
        _ request: UpdateRequest, _ decisions: [[UInt8]: ConflictDecision], in store: Store
    ) throws -> Triggered {
        switch try look(at: request, decisions, in: store) {
        case .repeated:
            return Triggered(answer: try answerAsIs(request, in: store))
        case .conflicts(let conflicts):
            return Triggered(conflicts: conflicts)
        case .plan(let plan):
            guard !plan.writes.isEmpty else {
                return Triggered(answer: try answerAsIs(request, in: store))
            }
            let dataset = try store.existingDataset(request.storeName)
            return Triggered(
                plan: plan, records: try TriggerRecords.all(of: dataset, with: plan.writes))
        }
    }

    /// - Throws: `invalidTriggerOutput` for a record that no client could have written.
    private func plan(
        of changed: [TriggerRecord], _ request: UpdateRequest, at position: UInt64
    ) throws(APIFailure) -> UpdatePlan {
        var dates: [[UInt8]: Int64] = [:]
        for patch in request.patches { dates[patch.key] = patch.deviceMilliseconds }
        var keys: Set<[UInt8]> = []
        var writes: [PlannedWrite] = []
        for record in changed {
            let key = Array(record.key.utf8)
            guard keys.insert(key).inserted,
                RecordPatch.fits(record.key, 1...max(1, limits.recordKeyMax)),
                RecordPatch.fits(record.newValue ?? "", 0...max(0, limits.recordValueMax))
            else {
                throw APIFailure(
                    .invalidTriggerOutput,
                    "the sync trigger gave a key twice, or a key or value that is too long")
            }
            writes.append(
                PlannedWrite(
                    key: key, value: record.newValue.map { Array($0.utf8) },
                    deviceMilliseconds: dates[key]))
        }
        return UpdatePlan(position: position, writes: writes)
    }
}

/// What a sync trigger is shown.
enum TriggerRecords {
    /// All live records that are text, as they would be after the writes, in the order of their
    /// keys, and those that the writes would remove.
    static func all(
        of dataset: Dataset?, with writes: [PlannedWrite]
    ) throws(StoreError) -> [TriggerRecord] {
        var changes: [[UInt8]: PlannedWrite] = [:]
        for write in writes { changes[write.key] = write }
        var records: [TriggerRecord] = []
        if let cursor = try dataset?.records() {
            while let record = try cursor.next() {
                let change = changes.removeValue(forKey: record.key)
                guard let key = record.keyText else { continue }
                let old = record.valueText
                // What is no text, as replicas may write it, is shown only where it is replaced.
                guard old != nil || change != nil else { continue }
                let new = if let change { change.newText } else { old }
                records.append(
                    TriggerRecord(
                        key: key, oldValue: old, newValue: new, isChanged: change != nil))
            }
        }
        for write in changes.values {
            records.append(
                TriggerRecord(
                    key: String(decoding: write.key, as: UTF8.self), oldValue: nil,
                    newValue: write.newText, isChanged: true))
        }
        return records.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }
}

extension PlannedWrite {
    /// nil if the record is removed. Patches are UTF-8, so nothing of it is repaired.
    fileprivate var newText: String? {
        value.map { String(decoding: $0, as: UTF8.self) }
    }
}

extension Dataset {
    /// The record of a key, or the tombstone of a removed one; nil if there is neither.
    func recordOrTombstone(of key: [UInt8]) throws(StoreError) -> Record? {
        try record(for: key, includingDeleted: true).flatMap { $0.isDropped ? nil : $0 }
    }
}

extension RecordTeller {
    /// Writes the record of a key as it is. Of what is not there, and of what cannot be told, the
    /// client is told what it knows of anything that is gone.
    func tell(
        _ key: [UInt8], in dataset: Dataset, _ sheet: Sheet?, to answer: inout JSONAnswer
    ) throws(StoreError) {
        if let record = try dataset.recordOrTombstone(of: key),
            write(record, try sheet?.entry(of: record), to: &answer)
        {
            return
        }
        let none = APIDate(clampingMilliseconds: Int64(0))
        ToldRecord(
            key: key, value: nil, syncCount: 0, lastModified: none,
            lastModifiedBy: identity.text, deviceLastModified: none
        ).write(to: &answer)
    }
}
