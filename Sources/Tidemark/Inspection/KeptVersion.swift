/// One version of a record that is still on disk: where, how much it takes, and why it is there.
package struct KeptVersion: Hashable, Sendable {
    /// What keeps a version from going.
    package enum Reason: Hashable, Sendable {
        /// It is the value that readers see.
        case current
        /// It is a deletion of which these peers are not known to have heard.
        case awaitedBy([ReplicaID])
        /// It is a deletion, and the exchange that brought it has not ended.
        case unfinishedExchange
        /// It is a deletion in a dataset with writes that are held because of their dates.
        case heldWrites
        /// It is a deletion that no peer is known to have, and which none waits for.
        case unsent
        /// It was superseded, and the history that is asked for has it.
        case history
        /// It was superseded by a change that no peer has yet, and is the newest version that one
        /// has: the ancestor of the conflict that may come.
        case ancestor
        /// Nothing: it goes when what lies in its file is merged with all that is older.
        case nothing
    }

    package let version: Version
    package let syncCount: SyncCount
    package let isDeletion: Bool
    /// The name, within the store's directory, of the log or segment that it lies in.
    package let file: String
    /// The value file that its value lies in; nil if that is in the log or segment itself.
    package let valueFile: String?
    /// Of key and value, before compression.
    package let byteCount: Int
    package let reason: Reason
}

extension Dataset {
    /// The versions of a key that are on disk, newest first, each with what keeps it there under
    /// the options that the store was opened with. A snapshot in another process may keep more.
    ///
    /// O(segments + versions).
    ///
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    package func keptVersions(of key: [UInt8]) throws(StoreError) -> [KeptVersion] {
        try key.withBytes { (key) throws(StoreError) in
            try engine.keptVersions(of: key, in: state)
        }
    }
}

extension Engine {
    fileprivate func keptVersions(
        of key: ByteView, in state: DatasetState
    ) throws(StoreError) -> [KeptVersion] {
        let moment = try moment()
        let (id, dirtiness) = try scope(of: state, at: moment)
        let files = try filesByTables(in: moment.view)
        let retention = try retention(of: id)
        let peers = withLock { held in state.peers }
        var verdicts = KeyRetention(retention, reachesOldest: true)
        verdicts.beginKey()
        var loss = HistoryLoss()
        var cursor = try MergeCursor(moment.view, order: .forward)
        try cursor.seek(EntryPosition(before: key, in: id))
        var kept: [KeptVersion] = []
        while let entry = cursor.entry, entry.dataset == id, entry.key.equals(key) {
            let version = cursor.tables.version(of: entry)
            let isKept: Bool =
                switch verdicts.verdict(on: entry, in: cursor.tables, &loss) {
                case .keep: true
                case .drop: false
                }
            let reason =
                isKept
                ? self.reason(
                    entry, version, retention, peers, number: kept.count, of: dirtiness)
                : .nothing
            kept.append(
                KeptVersion(
                    version: version, syncCount: SyncCount(rawValue: entry.syncCount),
                    isDeletion: entry.kind == .delete,
                    file: files[ObjectIdentifier(cursor.tables)] ?? "",
                    valueFile: entry.valueHandle.map { FileName.values($0.file) },
                    byteCount: entry.key.count + entry.valueCount, reason: reason))
            try cursor.advance()
        }
        return kept
    }

    /// Each log and segment has tables of its own.
    private func filesByTables(
        in view: ReadView
    ) throws(StoreError) -> [ObjectIdentifier: String] {
        var files: [ObjectIdentifier: String] = [:]
        for memtable in view.memtables {
            files[ObjectIdentifier(memtable.tables)] = FileName.log(memtable.log.number)
        }
        for segment in view.segments {
            files[ObjectIdentifier(try segment.parts().tables)] = FileName.sealed(segment.number)
        }
        return files
    }

    /// Of a version that a merge keeps.
    ///
    /// - Parameter number: of newer versions of the key.
    private func reason(
        _ entry: Entry, _ version: Version, _ retention: Retention,
        _ peers: [ReplicaID: PeerCheckpoint], number: Int, of dirtiness: Dirtiness
    ) -> KeptVersion.Reason {
        guard number == 0 else {
            let isHistory =
                number <= retention.historyVersions || retention.agedBefore < .max
            return isHistory ? .history : .ancestor
        }
        guard entry.kind == .delete else { return .current }
        // What a merge that keeps any history does not collect.
        guard retention.historyVersions == 0 else { return .history }
        let lacking = peers.filter { !$0.value.vector.covers(version.vector) }.keys.sorted()
        if !lacking.isEmpty { return .awaitedBy(lacking) }
        let rule = retention.tombstones
        if rule.passed == nil, rule.seen.isEmpty { return .heldWrites }
        guard rule.seen.covers(version.vector) else { return .unfinishedExchange }
        return dirtiness.isDirty(version.dot) ? .unsent : .history
    }
}

// MARK: - Files

/// Where a sealed segment stands among the others.
package struct SegmentPlace: Hashable, Sendable {
    /// Of its run: 0 is the newest.
    package let run: Int
    package let runCount: Int
    /// Segments of its run.
    package let runSegmentCount: Int
}

extension Store {
    /// The place of a sealed segment; nil if the store has none of that name. O(segments).
    package func place(ofSegment file: String) throws(StoreError) -> SegmentPlace? {
        let runs = try engine.moment().view.runs
        for (number, run) in runs.enumerated()
        where run.segments.contains(where: { FileName.sealed($0.number) == file }) {
            return SegmentPlace(
                run: number, runCount: runs.count, runSegmentCount: run.segments.count)
        }
        return nil
    }

    /// The segments that name a value file, newest first, with what their entries use of it.
    /// O(segments).
    package func segments(
        naming valueFile: String
    ) throws(StoreError) -> [(file: String, valueCount: Int, usedBytes: UInt64)] {
        var users: [(file: String, valueCount: Int, usedBytes: UInt64)] = []
        for segment in try engine.moment().view.segments {
            for row in segment.values.table.rows where FileName.values(row.file) == valueFile {
                users.append(
                    (
                        FileName.sealed(segment.number), Int(clamping: row.valueCount),
                        row.storedBytes
                    ))
            }
        }
        return users
    }
}
