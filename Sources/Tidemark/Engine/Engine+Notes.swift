// Notes: records of the store's own datasets in the batch of what they are about.

extension EngineState {
    /// Checks the notes of a batch, so that nothing can fail once its first byte is in the log.
    ///
    /// - Parameter writeCount: of the batch's writes, which a stamp may name.
    func check(_ notes: [SystemNote], writeCount: Int = 0) throws(StoreError) {
        for note in notes {
            var namesWrite = true
            if case .dot(let index) = note.stamp { namesWrite = (0..<writeCount).contains(index) }
            guard note.dataset.engine === engine, note.dataset.state.isVisible,
                DatasetName.isSystem(note.dataset.name),
                (1...Limits.keyBytesMax).contains(note.key.count),
                note.valueCount <= Limits.valueBytesMax, namesWrite
            else {
                throw StoreError(
                    .invalidArgument,
                    "a note of \(note.valueCount) bytes for \(note.dataset.name) is beyond the "
                        + "limits of keys and values, of another store, or about no write")
            }
        }
    }

    /// Bytes that the notes of a batch may take in the log.
    func bytesMax(of notes: [SystemNote]) -> Int {
        notes.reduce(0) { sum, note in
            // What the replaced record had seen comes to it if the store was repaired.
            let seen = note.dataset.state.vector.union(note.dataset.state.outstanding)
            return sum
                + LogBlockWriter.byteCountMax(
                    key: note.key.count, value: note.valueCount)
                + LogBlockWriter.definitionBytesMax(seen)
        }
    }

    /// What the records had seen that the notes replace, where the dataset's vector does not say
    /// so. To be asked before anything is written.
    func replacedVectors(of notes: [SystemNote]) throws(StoreError) -> [VersionVector?] {
        var vectors: [VersionVector?] = []
        for note in notes where !note.dataset.state.outstanding.isEmpty {
            vectors.append(
                try note.key.withBytes { (key) throws(StoreError) in
                    try vectorOfReplaced(
                        StagedWrite(
                            state: note.dataset.state, kind: .put, key: key, value: .empty,
                            expected: nil))
                })
        }
        return vectors
    }

    /// Puts the notes of a batch into its block.
    ///
    /// - Parameters:
    ///   - stamps: what is put behind the values that ask for it.
    ///   - replaced: of the notes to datasets in the middle of an exchange, in their order.
    func append(
        _ notes: [SystemNote], stamps: NoteStamps = NoteStamps(), replaced: [VersionVector?],
        to block: inout LogBlockWriter, memtable: Memtable
    ) throws(StoreError) {
        guard !notes.isEmpty else { return }
        var replaced = replaced[...]
        let now = storage.wallClockMilliseconds()
        for note in notes {
            let state = note.dataset.state
            // The list was made when the datasets were in the same state, under the same lock.
            let seen = state.outstanding.isEmpty ? nil : replaced.popFirst() ?? nil
            try note.key.withBytes { (key) throws(StoreError) in
                try stamps.value(of: note).withBytes { (value) throws(StoreError) in
                    let staged = StagedWrite(
                        state: state, kind: note.value == nil ? .delete : .put, key: key,
                        value: value, expected: nil)
                    _ = append(staged, seen: seen, at: now, to: &block, memtable: memtable)
                }
            }
        }
    }
}

/// What the notes of a batch are stamped with.
struct NoteStamps {
    /// What the batch's writes became, in their order.
    var dots: [Dot] = []
    /// The dataset's sync counts before and after them.
    var counts: (before: UInt64, after: UInt64) = (0, 0)

    /// - Parameter note: one that was checked.
    func value(of note: SystemNote) -> [UInt8] {
        guard let value = note.value, note.stamp != .nothing else { return note.value ?? [] }
        var writer = ByteWriter()
        writer.reserve(note.valueCount)
        writer.append(value)
        switch note.stamp {
        case .nothing: break
        case .dot(let index):
            writer.append(fixed64: dots[index].replica.high)
            writer.append(fixed64: dots[index].replica.low)
            writer.append(fixed64: dots[index].counter)
        case .counts:
            writer.append(fixed64: counts.before)
            writer.append(fixed64: counts.after)
        }
        return writer.bytes
    }
}
