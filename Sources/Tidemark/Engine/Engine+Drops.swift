// Records that are let go here and nowhere else, because only a part of the dataset is kept.
//
// What a store has written lies in its log and its segments until a merge leaves it out, so
// something newer must say that it no longer counts: a *mark*. It lies like a tombstone, with a
// counter of 0 and an origin that has seen nothing. No write has such a dot, and every version
// contains it. So, with no rule made for it,
// - readers find no record, and followers of changes are told that it went;
// - whatever comes for the key, whichever version it is, descends from the mark and takes its
//   place;
// - it adds nothing to what the dataset has seen, and a write that replaces it descends from
//   nothing of it.
//
// What was dropped such a write has seen all the same, if the dataset's vector covers it: a vector
// has no gaps, so that no write of a replica can be told from its later ones as not seen, and marks
// are not kept for ever. It takes the place of that wherever it lies.
//
// Rules made for it: it is told to no peer, digests pass it over, and a merge that reaches the
// oldest segment leaves it out, also in a dataset that has peers.

extension EngineState {
    /// Bytes that the marks of dropped records may take in the log.
    func bytesMax(of drops: [LocalDrop]) -> Int {
        guard !drops.isEmpty else { return 0 }
        return drops.reduce(DefinitionItem.byteCountMax(vectorCount: 0)) { sum, drop in
            sum + LogBlockWriter.byteCountMax(key: drop.key.count, value: 0)
        }
    }

    /// Puts marks in the place of records.
    func apply(
        _ drops: [LocalDrop], to state: DatasetState, _ block: inout LogBlockWriter,
        _ memtable: Memtable
    ) throws(StoreError) {
        guard !drops.isEmpty else { return }
        let origin = block.number(of: replicaID, VersionVector(), "", in: memtable.tables)
        for drop in drops {
            // As of now, so that the past still has what was dropped.
            let time = clock.next(wallClockMilliseconds: storage.wallClockMilliseconds())
            try drop.key.withBytes { (key) throws(StoreError) in
                append(
                    .delete, key, .empty, expiresAt: 0, origin: origin, counter: 0, time: time,
                    of: state, to: &block, memtable: memtable)
            }
        }
    }
}
