import Tidemark

// The journal of conflicts: what was settled here, each entry in one batch with the write that it
// is about. So a conflict is in the journal exactly if its outcome is in the dataset, whatever a
// crash left behind.

/// Writes the journal of one dataset.
struct ConflictJournal {
    /// Where conflicts come from, and who settles them.
    struct Source {
        var policy: SettledConflict.Policy
        var peer: ReplicaID?
        var exchange: UInt64?
    }

    private let dataset: Dataset
    private let options: SyncJournalOptions

    /// - Parameter options: within their bounds.
    init(_ dataset: Dataset, _ options: SyncJournalOptions) {
        self.dataset = dataset
        self.options = options
    }

    /// Entries for the batch that stores the outcomes, and deletions of those that are too many or
    /// too old now.
    ///
    /// - Parameter settled: outcomes, each with the place in the batch of its last write.
    func notes(
        of settled: [(outcome: ConflictSettlement.Outcome, write: Int)], by source: Source
    ) throws(StoreError) -> [SystemNote] {
        guard !settled.isEmpty, options.keeps(source.policy) else { return [] }
        let list = TimedNotes(which: .conflicts, dataset: dataset)
        let home = try list.home()
        var bytesLeft = SyncLimits.journalBatchBytesMax
        var notes: [SystemNote] = []
        for one in settled.suffix(options.conflictsMax) {
            let time = list.nextTime()
            let entry = SettledConflict(
                one.outcome, at: time, by: source, version: options.policyVersion,
                valueBytesMax: min(options.valueBytesMax, max(0, bytesLeft / 4)))
            let bytes = entry.encoded
            bytesLeft -= bytes.count
            notes.append(
                SystemNote(
                    in: home, key: list.key(at: time), value: bytes,
                    stamp: .dot(ofWrite: one.write)))
        }
        let trimmed = try list.trimming(
            adding: notes.count, countMax: options.conflictsMax, before: start(list))
        return trimmed + notes
    }

    /// Before which entries are too old.
    private func start(_ list: TimedNotes) -> HybridTime {
        let (now, age) = (list.nextTime().milliseconds, options.age.millisecondsClamped)
        return HybridTime(milliseconds: now > age ? now - age : 0, counter: 0)
    }
}

extension SettledConflict {
    /// All but the write that it becomes, which only the store can say.
    ///
    /// - Parameter valueBytesMax: longer values are left out.
    init(
        _ outcome: ConflictSettlement.Outcome, at time: HybridTime,
        by source: ConflictJournal.Source, version: UInt64, valueBytesMax: Int
    ) {
        let conflict = outcome.conflict
        dataset = conflict.dataset
        key = conflict.key
        self.time = time
        peer = source.peer
        exchange = source.exchange
        policy = source.policy
        policyVersion = version
        switch conflict.ancestry {
        case .known(let record): ancestry = .known(Side(record, valueBytesMax: valueBytesMax))
        case .nonexistent: ancestry = .nonexistent
        case .notKept: ancestry = .notKept
        }
        local = Side(conflict.local, valueBytesMax: valueBytesMax)
        remote = Side(conflict.remote, valueBytesMax: valueBytesMax)
        decision = outcome.settlement.decision
        self.outcome = Content(outcome.value, valueBytesMax: valueBytesMax)
        outcomeExpiresAt = outcome.expiresAt
        write = conflict.local.version.dot
    }
}

extension SettledConflict.Side {
    init(_ record: Record, valueBytesMax: Int) {
        self.init(
            version: record.version,
            content: SettledConflict.Content(record.value, valueBytesMax: valueBytesMax),
            expiresAt: record.expiresAt)
    }
}

extension SettledConflict.Content {
    init(_ value: [UInt8]?, valueBytesMax: Int) {
        guard let value else {
            self = .deleted
            return
        }
        self = value.count <= valueBytesMax ? .value(value) : .leftOut(byteCount: value.count)
    }
}
