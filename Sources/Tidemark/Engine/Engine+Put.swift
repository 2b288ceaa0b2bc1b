extension Engine {
    /// Applies one write: what ``commit(_:durability:write:)`` does for many, without the closures
    /// that a list takes.
    ///
    /// - Throws: as there.
    func commit(
        _ staged: StagedWrite, durability: Durability?
    ) throws(StoreError) -> Dot {
        let position: LogPosition
        let dot: Dot
        do {
            monitor.lock()
            defer { monitor.unlock() }
            let (memtable, seen) = try room(for: staged)
            var block = LogBlockWriter(memtable.log)
            dot = append(staged, seen: seen, to: &block, memtable: memtable)
            publish(block, in: memtable)
            position = LogPosition(log: memtable.log.number, offset: memtable.log.appended)
        }
        try makeDurable(position, durability)
        return dot
    }

    /// Checks a write and finds room for it. Mostly there is room in the active log, and then
    /// nothing need be asked twice.
    private func room(
        for staged: StagedWrite
    ) throws(StoreError) -> (Memtable, seen: VersionVector?) {
        try checkWritable()
        var seen: VersionVector?
        let bytes = try measure(staged, &seen)
        if let active, active.log.writablePayload >= bytes, bytes <= Limits.batchBytesMax {
            return (active, seen)
        }
        let memtable = try room { () throws(StoreError) in try measure(staged, &seen) }
        return (memtable, seen)
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
        if !staged.state.outstanding.isEmpty, let vector = try vectorOfReplaced(staged) {
            seen = vector
            bytes += LogBlockWriter.definitionBytesMax(staged.state.vector.union(vector))
        }
        return bytes
    }
}
