extension Engine {
    /// Applies one write: what ``commit(_:durability:validate:)`` does for many.
    ///
    /// - Throws: as there.
    func commit(
        _ staged: StagedWrite, durability: Durability?
    ) throws(StoreError) -> Dot {
        if staged.value.count > EngineState.lockedBytesMax,
            let dot = try commit(LargeWrite(write: staged), durability: durability)
        {
            return dot
        }
        let isSyncedAtOnce = (durability ?? options.durability) == .disk
        let (dot, position) = try withLock { (held) throws(StoreError) in
            try held.commit(staged, isSyncedAtOnce: isSyncedAtOnce)
        }
        try makeDurable(position, durability)
        return dot
    }
}

extension EngineState {
    @inline(__always)
    fileprivate func commit(
        _ staged: StagedWrite, isSyncedAtOnce: Bool
    ) throws(StoreError) -> (Dot, LogPosition) {
        awaitWriter()
        active?.expect(staged.key, in: staged.state.recordsID)
        let (memtable, bytes, seen) = try room(for: staged)
        let dot: Dot
        if isSyncedAtOnce, bytes <= LogSegment.scratchPayloadMax {
            dot = try write(staged, seen: seen, into: memtable)
        } else {
            var block = LogBlockWriter(memtable.log)
            dot = append(
                staged, seen: seen, at: storage.wallClockMilliseconds(), to: &block,
                memtable: memtable)
            publish(block, in: memtable)
        }
        return (dot, LogPosition(endOf: memtable.log))
    }

    /// Puts a block of one write into the log by a system call, since it will be synced at once.
    private func write(
        _ staged: StagedWrite, seen: VersionVector?, into memtable: Memtable
    ) throws(StoreError) -> Dot {
        let state = staged.state
        var block = LogBlockWriter(scratchOf: memtable.log)
        let dot = append(
            staged, seen: seen, at: storage.wallClockMilliseconds(), to: &block,
            memtable: memtable)
        let payload = unsafe UnsafeRawPointer(memtable.log.payloadStart)
        do {
            try memtable.log.writeScratch(payloadCount: block.count)
        } catch {
            // What nobody can read was not written, and the next one may not seem to follow it.
            state.takeBack(dot)
            sequence -= 1
            if staged.kind == .put { counted.puts -= 1 } else { counted.deletes -= 1 }
            stopWriting(error)
            throw error
        }
        unsafe block.insertWritten(payload, sequence: sequence, into: memtable)
        publishAppended(memtable)
        return dot
    }

    /// Checks a write and finds room for it. Mostly there is room in the active log, and then
    /// nothing need be asked twice.
    private func room(
        for staged: StagedWrite
    ) throws(StoreError) -> (Memtable, bytes: Int, seen: VersionVector?) {
        try checkWritable()
        var seen: VersionVector?
        var bytes = try measure(staged, &seen)
        if let active, active.log.writablePayload >= bytes, bytes <= Limits.batchBytesMax,
            !pace.holdsBack(active), active.hasRoom(within: budget.memtableBytesMax)
        {
            return (active, bytes, seen)
        }
        let memtable = try room { () throws(StoreError) in
            bytes = try measure(staged, &seen)
            return bytes
        }
        return (memtable, bytes, seen)
    }

    /// The bytes that a block of one write may take.
    ///
    /// - Parameter seen: becomes what the replaced version had seen if the dataset is in the
    ///   middle of an exchange.
    private func measure(
        _ staged: StagedWrite, _ seen: inout VersionVector?
    ) throws(StoreError) -> Int {
        try check(staged)
        if staged.expected != nil { try checkExpectation(of: staged) }
        var bytes =
            LogBlockWriter.byteCountMax(key: staged.key.count, value: staged.value.count)
            + LogBlockWriter.definitionBytesMax(staged.state.vector)
            + revivalBytesMax(staged)
        if !staged.state.outstanding.isEmpty, let vector = try vectorOfReplaced(staged) {
            seen = vector
            bytes += LogBlockWriter.definitionBytesMax(staged.state.vector.union(vector))
        }
        return bytes
    }
}
