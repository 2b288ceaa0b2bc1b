extension Engine {
    /// Applies the outcome of a comparison with a peer: everything, or nothing if the record of
    /// any key has moved on. Returns the keys that have; see ``ReplicationBatch/drawn``, too.
    func replicate(
        _ batch: ReplicationBatch, into state: DatasetState
    ) throws(StoreError) -> [[UInt8]] {
        var dots: [Dot] = []
        return try replicate(batch, into: state, dots: &dots)
    }

    /// - Parameter dots: becomes what the writes became, in their order, if they were applied.
    func replicate(
        _ batch: ReplicationBatch, into state: DatasetState, dots: inout [Dot]
    ) throws(StoreError) -> [[UInt8]] {
        try checkBounds(of: batch)
        var batch = batch
        let given = batch
        var moved: [[UInt8]] = []
        var stamps = NoteStamps()
        let retired = try commitBlock(nil, waking: state.name) { (held) throws(StoreError) in
            batch = try held.whole(given, in: state)
            try held.check(batch.notes, writeCount: batch.writes.count)
            if !batch.writes.isEmpty || batch.seen != nil {
                try held.check(
                    batch.meeting, with: batch.checkpoint?.peer, isLast: batch.seen != nil,
                    in: state)
            }
            return try held.bytesMax(of: batch, into: state) + held.bytesMax(of: batch.notes)
                + held.bytesMax(of: batch.drops)
        } write: { (held, block, memtable) throws(StoreError) -> DatasetID? in
            moved = try held.moved(of: batch, in: state)
            guard moved.isEmpty else { return nil }
            if let drawn = batch.drawn, drawn != held.nextCount(of: state) {
                moved = [[]]
                return nil
            }
            let replaced = try held.replacedVectors(of: batch.notes)
            let formerID = state.recordsID
            stamps.counts.before = state.syncCount
            try held.applyLifecycle(of: batch, to: state, &block, memtable)
            if let drawn = batch.drawn { held.note(VersionVector([drawn]), in: state, &block) }
            stamps.dots = try held.apply(batch.writes, to: state, &block, memtable)
            stamps.counts.after = state.syncCount
            try held.apply(batch.drops, to: state, &block, memtable)
            for replica in batch.disowned {
                // Where the peer claims nothing of it either, what lies here under it would be in
                // no vector, and a write would not descend from what it replaces.
                let isClaimed = batch.seen.map { $0[replica] > 0 } ?? true
                held.disown(replica, isSettled: batch.isSettled && isClaimed, in: state, &block)
            }
            if let forgotten = batch.forgotten { held.note(forgotten, in: state, &block) }
            if let seen = batch.seen {
                held.inherit(batch.meeting, in: state, &block)
                held.note(seen, in: state, &block)
            }
            if let (peer, checkpoint) = batch.checkpoint {
                held.note(checkpoint, of: peer, in: state, &block)
            }
            try held.append(
                batch.notes, stamps: stamps, replaced: replaced, to: &block, memtable: memtable)
            // What is noted of a dataset may be news to its peers.
            if !batch.notes.isEmpty { held.touch(state) }
            return formerID != state.recordsID ? formerID : 0
        }
        guard let retired else { return moved }
        dots = stamps.dots
        if retired != 0 { try forget(retired) }
        return []
    }
}

extension EngineState {
    /// Applies the writes of a batch, and returns what each became.
    func apply(
        _ writes: [ReplicatedWrite], to state: DatasetState,
        _ block: inout LogBlockWriter, _ memtable: Memtable
    ) throws(StoreError) -> [Dot] {
        var dots: [Dot] = []
        for write in writes {
            let dot = try write.key.withBytes { (key) throws(StoreError) -> Dot in
                try (write.value ?? []).withBytes { (value) throws(StoreError) -> Dot in
                    apply(write, key, value, to: state, &block, memtable)
                }
            }
            dots.append(dot)
        }
        return dots
    }

    /// The keys of a batch of which another version is here than the one it goes by.
    fileprivate func moved(
        of batch: ReplicationBatch, in state: DatasetState
    ) throws(StoreError) -> [[UInt8]] {
        var moved: [[UInt8]] = []
        for write in batch.writes
        where try currentVersion(of: write.key, in: state) != write.expected {
            moved.append(write.key)
        }
        for drop in batch.drops
        where try currentVersion(of: drop.key, in: state) != drop.expected {
            moved.append(drop.key)
        }
        return moved
    }
}

extension EngineParts {
    func checkBounds(of batch: ReplicationBatch) throws(StoreError) {
        for write in batch.writes {
            guard (1...Limits.keyBytesMax).contains(write.key.count),
                write.value?.count ?? 0 <= Limits.valueBytesMax,
                write.version.author.utf8.count <= Limits.authorBytesMax,
                write.version.dot.counter > 0, write.version.vector.isCountable,
                write.version.time.rawValue < UInt64(Int64.max),
                write.expiresAt ?? 0 <= EntryLayout.expiryMax
            else { throw .beyondLimits }
        }
        // What is written of it must be such as can be read again.
        guard batch.seen?.isCountable ?? true,
            batch.checkpoint?.1.isCountable ?? true,
            batch.writes.allSatisfy({ $0.isCountable }),
            batch.lifecycle?.wiped.isCountable ?? true,
            batch.forgotten?.isStorable ?? true, batch.meeting?.isStorable ?? true,
            batch.lifecycle?.time.rawValue ?? 0 < UInt64(Int64.max)
        else { throw .beyondLimits }
    }
}

extension EngineState {
    func bytesMax(
        of batch: ReplicationBatch, into state: DatasetState
    ) throws(StoreError) -> Int {
        let joined = batch.lifecycle.map { state.lifecycle.joined(with: $0) } ?? state.lifecycle
        var bytes = StateItem.dataset(state, joined).byteCount
        if state.lifecycle.isWipedAnew(by: joined) {
            bytes += try survivorBytesMax(of: state, joined)
        }
        let drawn = VersionVector([Dot(replica: replicaID, counter: .max)])
        let drawnBytes = StateItem.seen(drawn, name: state.name).byteCount
        var previous: Version?
        for write in batch.writes {
            bytes += LogBlockWriter.byteCountMax(
                key: write.key.count, value: write.value?.count ?? 0)
            // Records in the order of change mostly share what their writer had seen.
            let version = write.version
            if version.author != previous?.author || version.dot.replica != previous?.dot.replica
                || version.storedVector != previous?.storedVector
            {
                bytes += LogBlockWriter.definitionBytesMax(version.vector)
            }
            previous = version
            if case .rewrite(_, _, let seen, _, _) = write.content {
                bytes += 1 + LogBlockWriter.definitionBytesMax(seen.union(state.vector))
            }
            if case .resolve = write.content {
                bytes += LogBlockWriter.definitionBytesMax(version.vector)
                bytes += 2 * LogBlockWriter.definitionBytesMax(state.vector)
                bytes += LogBlockWriter.definitionBytesMax(
                    write.expected?.vector ?? VersionVector())
            }
            if case .outlive = write.content {
                bytes += LogBlockWriter.definitionBytesMax(version.vector)
                bytes += drawnBytes
            }
        }
        return bytes + bytesMax(of: batch.meeting, in: state)
            + (batch.drawn == nil ? 0 : drawnBytes)
            + (noteItems(of: batch, state).reduce(0) { $0 + $1.byteCount })
    }

    /// What a batch says of the dataset beside its records, its lifecycle and what is drawn.
    private func noteItems(of batch: ReplicationBatch, _ state: DatasetState) -> [StateItem] {
        var items = batch.disowned.map {
            StateItem.disowned($0, isSettled: true, name: state.name)
        }
        if let forgotten = batch.forgotten {
            items.append(.forgotten(forgotten, name: state.name))
        }
        if let seen = batch.seen { items.append(.seen(seen, name: state.name)) }
        if let (peer, checkpoint) = batch.checkpoint {
            items.append(.checkpoint(checkpoint, of: peer, name: state.name))
        }
        return items
    }

    private func currentVersion(
        of key: [UInt8], in state: DatasetState
    ) throws(StoreError) -> Version? {
        guard state.recordsID != 0 else { return nil }
        return try key.withBytes { (key) throws(StoreError) in
            try currentView.withNewest(of: key, in: state.recordsID, sequenceMax: .max) {
                (entry, tables) throws(StoreError) -> Version? in
                guard let entry, let tables else { return nil }
                return tables.version(of: entry)
            }
        }
    }

    /// - Returns: the name of the write that it became.
    @discardableResult
    func apply(
        _ write: ReplicatedWrite, _ key: ByteView, _ value: ByteView, to state: DatasetState,
        _ block: inout LogBlockWriter, _ memtable: Memtable
    ) -> Dot {
        let kind: EntryKind = write.value == nil ? .delete : .put
        switch write.content {
        case .adopt(_, let version, let expiresAt):
            // The dataset may have been deleted since the versions were compared.
            if !state.lifecycle.wiped.covers(version.vector) {
                adopt(
                    version, kind, key, value, expiresAt: expiresAt ?? 0, into: state, &block,
                    memtable)
            }
            return version.dot
        case .resolve(_, let seen, let expiresAt):
            see(seen.time)
            let both = seen.vector.union(write.expected?.vector ?? VersionVector())
            state.noteApplied(both)
            return appendLocal(
                state, kind: kind, key: key, value: value, expiresAt: expiresAt ?? 0,
                seen: both, claiming: write.claims, to: &block, memtable: memtable)
        case .rewrite(_, let version, let seen, let keepsTime, let expiresAt):
            see(version.time)
            state.noteApplied(seen)
            // Or the clock would go along with it when the log is replayed.
            if keepsTime, version.time > latestBelieved {
                block.append(byte: LogItem.Code.dated.rawValue)
            }
            return appendLocal(
                state, kind: kind, key: key, value: value, expiresAt: expiresAt ?? 0,
                seen: seen, claiming: write.claims, at: keepsTime ? version.time.next : nil,
                to: &block, memtable: memtable)
        case .outlive(_, let version, let expiresAt):
            let count = VersionVector([nextCount(of: state)])
            note(count, in: state, &block)
            adopt(
                version.joined(with: count), kind, key, value, expiresAt: expiresAt ?? 0,
                into: state, &block, memtable)
            return version.dot
        }
    }

    /// The count that this store gives out next.
    fileprivate func nextCount(of state: DatasetState) -> Dot {
        Dot(replica: replicaID, counter: state.vector[replicaID] + 1)
    }

    /// Stores a version as it is.
    func adopt(
        _ version: Version, _ kind: EntryKind, _ key: ByteView, _ value: ByteView,
        expiresAt: UInt64, into state: DatasetState, _ block: inout LogBlockWriter,
        _ memtable: Memtable
    ) {
        state.noteApplied(version.vector)
        see(version.time)
        let origin = block.number(
            of: version.dot.replica, version.storedVector, version.author, in: memtable.tables)
        append(
            kind, key, value, expiresAt: expiresAt, origin: origin,
            counter: version.dot.counter, time: version.time, of: state, to: &block,
            memtable: memtable)
    }

    /// The present id cannot be disowned: counters given out under it would be given out again.
    fileprivate func disown(
        _ replica: ReplicaID, isSettled: Bool, in state: DatasetState,
        _ block: inout LogBlockWriter
    ) {
        guard replica != replicaID else { return }
        block.append(.disowned(replica, isSettled: isSettled, name: state.name))
        state.disown(replica, isSettled: isSettled)
        touch(state)
    }

    func note(
        _ seen: VersionVector, in state: DatasetState, _ block: inout LogBlockWriter
    ) {
        guard !state.vector.covers(seen) else { return }
        block.append(.seen(seen, name: state.name))
        state.see(seen)
        touch(state)
    }

    func note(
        _ checkpoint: PeerCheckpoint, of peer: ReplicaID, in state: DatasetState,
        _ block: inout LogBlockWriter
    ) {
        guard state.peers[peer] != checkpoint else { return }
        block.append(.checkpoint(checkpoint, of: peer, name: state.name))
        state.register(peer, at: checkpoint)
        // No change that another peer need be told of.
        catalog.touch(state)
    }

    // MARK: - Lifecycle

    /// Joins a lifecycle, wipes what it wipes, and gives a dataset an id if it is to have one.
    fileprivate func applyLifecycle(
        of batch: ReplicationBatch, to state: DatasetState, _ block: inout LogBlockWriter,
        _ memtable: Memtable
    ) throws(StoreError) {
        let joined = batch.lifecycle.map { state.lifecycle.joined(with: $0) } ?? state.lifecycle
        let hasChanged = joined != state.lifecycle
        let wipesAnew = state.lifecycle.isWipedAnew(by: joined)
        let remaining = wipesAnew ? try survivors(of: state, joined) : []
        var isVisible = state.isVisible
        if hasChanged || !batch.writes.isEmpty || !joined.isDeleted {
            isVisible = try staysVisible(
                state, joined, wipesAnew ? remaining : nil, after: batch)
        }
        var id = state.recordsID
        if wipesAnew { id = 0 }
        if id == 0, isVisible || !remaining.isEmpty || !batch.writes.isEmpty {
            id = try takeDatasetID()
        }
        guard hasChanged || id != state.recordsID || isVisible != state.isVisible else { return }
        let movesRecords = id != state.recordsID
        change(state, to: joined, id: id, isVisible: isVisible, &block)
        guard movesRecords else { return }
        for record in remaining {
            try record.key.withBytes { (key) throws(StoreError) in
                try (record.value ?? []).withBytes { (value) throws(StoreError) in
                    let write = ReplicatedWrite(
                        key: record.key,
                        content: .adopt(
                            value: record.value, version: record.version,
                            expiresAt: record.expiresAt),
                        expected: nil)
                    apply(write, key, value, to: state, &block, memtable)
                }
            }
        }
    }

    /// A deleted dataset is there as long as it has live records: by what it holds, and not by
    /// what was heard first, the deletion, a record that it had not seen, or the end of that.
    ///
    /// - Parameter remaining: what a wipe leaves; nil if nothing is wiped.
    private func staysVisible(
        _ state: DatasetState, _ lifecycle: DatasetLifecycle, _ remaining: [Record]?,
        after batch: ReplicationBatch
    ) throws(StoreError) -> Bool {
        guard lifecycle.isDeleted else { return true }
        var isLive: [[UInt8]: Bool] = [:]
        for write in batch.writes {
            if case .adopt(_, let version, _) = write.content,
                lifecycle.wiped.covers(version.vector)
            {
                continue
            }
            isLive[write.key] = write.value != nil
        }
        if isLive.values.contains(true) { return true }
        if let remaining {
            return remaining.contains { $0.value != nil && isLive[$0.key] == nil }
        }
        return try hasLiveRecords(state, besides: Set(isLive.keys))
    }

    /// Whether anything in a dataset is not deleted, of all keys but the given. O(those, and
    /// tombstones, before the first other live record).
    func hasLiveRecords(
        _ state: DatasetState, besides keys: Set<[UInt8]>
    ) throws(StoreError) -> Bool {
        guard state.recordsID != 0 else { return false }
        let moment = momentAsStored()
        var steps = try ScanSteps(
            moment, dataset: state.recordsID, range: .all, order: .forward,
            includingDeleted: false)
        while let isOther = try steps.next({ entry, _ in
            keys.isEmpty || !keys.contains(entry.key.array)
        }) {
            if isOther { return true }
        }
        return false
    }

    /// The records that a wipe does not reach. It takes only what its maker had seen: a record
    /// that has superseded anything else, too, stays.
    func survivors(
        of state: DatasetState, _ lifecycle: DatasetLifecycle
    ) throws(StoreError) -> [Record] {
        guard state.recordsID != 0,
            !lifecycle.wiped.covers(state.vector) || !lifecycle.wiped.covers(state.outstanding)
        else { return [] }
        let moment = momentAsStored()
        var steps = try ScanSteps(
            moment, dataset: state.recordsID, range: .all, order: .forward, includingDeleted: true)
        let dirtiness = state.dirtiness(ownIDs: ownIDs)
        var records: [Record] = []
        while let record = try steps.next({ (entry, tables) throws(StoreError) in
            try Record(entry, tables, dirtiness)
        }) {
            if !lifecycle.wiped.covers(record.version.vector) { records.append(record) }
        }
        return records
    }

    func survivorBytesMax(
        of state: DatasetState, _ lifecycle: DatasetLifecycle
    ) throws(StoreError) -> Int {
        try survivors(of: state, lifecycle).reduce(0) { sum, record in
            sum
                + LogBlockWriter.byteCountMax(
                    key: record.key.count, value: record.value?.count ?? 0)
                + LogBlockWriter.definitionBytesMax(record.version.vector.union(state.vector))
        }
    }
}

extension Engine {
    /// Draws a new ReplicaID, under which nobody has seen anything yet.
    func renewReplicaID() throws(StoreError) {
        try renewReplicaID(isCopied: false)
    }

    /// The same for a store whose files are not those that it wrote: they were copied, or put back
    /// from a copy, and the ones that they were copied from may have been written to since. Before
    /// anything is written, so no dot names two writes, and nothing that others have under the id
    /// of before is in doubt.
    ///
    /// The log that says so is a copy itself. So another one follows at once, by which the files
    /// are known again.
    func renewCopiedReplicaID() throws(StoreError) {
        try renewReplicaID(isCopied: true)
        try withLock { (held) throws(StoreError) in
            held.awaitWriter()
            try held.rotate()
        }
    }

    private func renewReplicaID(isCopied: Bool) throws(StoreError) {
        let id = ReplicaID(high: storage.randomUInt64(), low: storage.randomUInt64())
        let item: StateItem = isCopied ? .copied(id) : .renamed(id)
        _ = try commitBlock(.disk) { held in
            item.byteCount
        } write: { (held, block, _) throws(StoreError) -> Void? in
            block.append(item)
            held.takeReplicaID(id, isCopied: isCopied)
            return ()
        }
    }
}

extension Dataset {
    /// Why a peer's record can never be stored, here or in any other store; nil if it can.
    package func refusalByStore(of record: Record) -> StoreError? {
        let version = record.version
        guard (1...Limits.keyBytesMax).contains(record.key.count),
            record.value?.count ?? 0 <= Limits.valueBytesMax,
            version.author.utf8.count <= Limits.authorBytesMax, version.dot.counter > 0,
            version.vector.isCountable, version.time.rawValue < UInt64(Int64.max),
            record.expiresAt ?? 0 <= EntryLayout.expiryMax
        else { return .beyondLimits }
        return nil
    }
}

extension VersionVector {
    /// Whether no counter is beyond ``Limits/countMax``.
    var isCountable: Bool { dots.allSatisfy { $0.counter <= Limits.countMax } }
}

extension PeerCheckpoint {
    fileprivate var isCountable: Bool {
        pulledThrough.rawValue <= Limits.countMax && pushedThrough.rawValue <= Limits.countMax
            && vector.isCountable
    }
}

extension ReplicatedWrite {
    fileprivate var isCountable: Bool {
        if case .rewrite(_, _, let seen, _, _) = content { seen.isCountable } else { true }
    }
}

extension StoreError {
    static let beyondLimits = StoreError(
        .invalidArgument,
        "a peer sent something beyond the limits of keys, values, authors, counters or times; "
            + "update the peer")
}
