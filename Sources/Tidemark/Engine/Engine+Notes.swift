// Notes: records of the store's own datasets in the batch of what they are about.

extension Engine {
    /// Checks the notes of a batch, so that nothing can fail once its first byte is in the log.
    func check(_ notes: [SystemNote]) throws(StoreError) {
        for note in notes {
            guard note.dataset.engine === self, note.dataset.state.isVisible,
                DatasetName.isSystem(note.dataset.name),
                (1...Limits.keyBytesMax).contains(note.key.count),
                note.value?.count ?? 0 <= Limits.valueBytesMax
            else {
                throw StoreError(
                    .invalidArgument,
                    "a note of \(note.value?.count ?? 0) bytes for \(note.dataset.name) is beyond "
                        + "the limits of keys and values, or of another store")
            }
        }
    }

    /// Bytes that the notes of a batch may take in the log. Under `monitor`.
    func bytesMax(of notes: [SystemNote]) -> Int {
        notes.reduce(0) { sum, note in
            // What the replaced record had seen comes to it if the store was repaired.
            let seen = note.dataset.state.vector.union(note.dataset.state.outstanding)
            return sum
                + LogBlockWriter.byteCountMax(
                    key: note.key.count, value: note.value?.count ?? 0)
                + LogBlockWriter.definitionBytesMax(seen)
        }
    }

    /// What the records had seen that the notes replace, where the dataset's vector does not say
    /// so. Under `monitor`, before anything is written.
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

    /// Puts the notes of a batch into its block. Under `monitor`.
    ///
    /// - Parameter replaced: of the notes to datasets in the middle of an exchange, in their order.
    func append(
        _ notes: [SystemNote], replaced: [VersionVector?], to block: inout LogBlockWriter,
        memtable: Memtable
    ) throws(StoreError) {
        guard !notes.isEmpty else { return }
        var replaced = replaced[...]
        let now = storage.wallClockMilliseconds()
        for note in notes {
            let state = note.dataset.state
            // The list was made when the datasets were in the same state, under the same lock.
            let seen = state.outstanding.isEmpty ? nil : replaced.popFirst() ?? nil
            try note.key.withBytes { (key) throws(StoreError) in
                try (note.value ?? []).withBytes { (value) throws(StoreError) in
                    let staged = StagedWrite(
                        state: state, kind: note.value == nil ? .delete : .put, key: key,
                        value: value, expected: nil)
                    _ = append(staged, seen: seen, at: now, to: &block, memtable: memtable)
                }
            }
        }
    }
}
