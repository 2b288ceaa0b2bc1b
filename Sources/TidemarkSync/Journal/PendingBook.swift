import Tidemark

// Conflicts that wait, each with the other side's whole version.
//
// A page that holds a conflict which nobody settles is taken in without it, and the position moves
// on: an exchange that carries only so many records would else begin at the same place for ever.
// So the version that was left out will not come again by itself, and three things keep it from
// being lost:
// - it is in this book, in one batch with the position;
// - while there is anything in the book, nobody's vector is joined into ours: we never claim to
//   have seen what is not in the dataset, so others go on sending it to us and to those who ask us;
// - each pull ends with the book: what is there is compared with what is here by then, as if it had
//   come in a page, and the policy is asked again.
//
// There is an entry for each version: two peers may each have another one of a key. Entries are
// under the time at which they began to wait; the value is
//
//   form (1), replica: peer, reason (0 left, 1 stopped, 2 failed and counted text), counted key,
//   version, varint sync count, varint expiry or 0, content (0 deleted, 1 and counted value)

/// What waits in one dataset, as of the moment at which this was made.
struct PendingBook {
    struct Entry {
        let time: HybridTime
        let peer: ReplicaID
        let reason: PendingConflict.Reason
        /// The other side's version. Its value is read when it is needed.
        let key: [UInt8]
        let version: Version
        /// With its value.
        let byteCount: Int
    }

    /// An entry as it lies in the store.
    struct Found {
        let entry: Entry
        fileprivate let bytes: [UInt8]
        fileprivate let syncCount: SyncCount
        fileprivate let expiresAt: UInt64?
        /// Where the value is; nil for a tombstone.
        fileprivate let value: Range<Int>?

        /// The other side's version. O(bytes of its value).
        var remote: Record {
            Record(
                key: entry.key, value: value.map { Array(bytes[$0]) }, version: entry.version,
                syncCount: syncCount, isDirty: false, expiresAt: expiresAt)
        }
    }

    private let list: TimedNotes
    /// The one that has waited longest first.
    private(set) var entries: [Entry] = []
    private var bytes = 0

    /// O(what waits). Of the entries of other keys just the key is looked at.
    ///
    /// - Parameter key: only its entries; nil for all, as is needed to add any.
    init(_ dataset: Dataset, of key: [UInt8]? = nil) throws(StoreError) {
        list = TimedNotes(which: .pending, dataset: dataset)
        var entries: [Entry] = []
        try Self.forEach(in: dataset, of: key) { (found) throws(StoreError) in
            entries.append(found.entry)
            return true
        }
        self.entries = entries
        bytes = entries.reduce(0) { $0 + $1.byteCount }
    }

    /// Hands out what waits, the one that has waited longest first, until the body says no.
    ///
    /// - Parameter key: only its entries; nil for all.
    static func forEach(
        in dataset: Dataset, of key: [UInt8]? = nil,
        _ body: (Found) throws(StoreError) -> Bool
    ) throws(StoreError) {
        let list = TimedNotes(which: .pending, dataset: dataset)
        try list.forEach { (time, bytes) throws(StoreError) in
            guard let found = decode(time, bytes, of: key) else { return true }
            return try body(found)
        }
    }

    /// The other side's version with its value; nil if it does not wait any more.
    func remote(of entry: Entry) throws(StoreError) -> Record? {
        guard let home = try list.existing(), let bytes = try home.get(list.key(at: entry.time))
        else { return nil }
        return Self.decode(entry.time, bytes)?.remote
    }

    // MARK: - Changing

    /// Notes that put conflicts into the book, or anew if they are there with something else.
    ///
    /// - Returns: nil if they are too many or too large to wait here.
    func notes(
        adding conflicts: [(conflict: Conflict, reason: PendingConflict.Reason)],
        from peer: ReplicaID
    ) throws(StoreError) -> [SystemNote]? {
        guard !conflicts.isEmpty else { return [] }
        let home = try list.home()
        let entriesByKey = Dictionary(grouping: entries, by: \.key)
        var (count, bytes) = (entries.count, self.bytes)
        var notes: [SystemNote] = []
        for (conflict, reason) in conflicts {
            let version = conflict.remote.version
            let known = entriesByKey[conflict.key] ?? []
            // A later version of a line of writes stands for the earlier ones.
            for entry in known where entry.version.dot != version.dot {
                guard version.vector.contains(entry.version.dot) else { continue }
                notes.append(
                    SystemNote(in: home, key: list.key(at: entry.time), value: nil))
                count -= 1
                bytes -= entry.byteCount
            }
            let same = known.first { $0.version.dot == version.dot }
            if let same, same.version == version, same.peer == peer, same.reason == reason {
                continue
            }
            let note = Self.encoded(conflict.remote, peer, reason)
            bytes += note.count - (same?.byteCount ?? 0)
            count += same == nil ? 1 : 0
            guard note.count <= Limits.valueBytesMax, count <= SyncLimits.pendingMax,
                bytes <= SyncLimits.pendingBytesMax
            else { return nil }
            notes.append(
                SystemNote(
                    in: home, key: list.key(at: same?.time ?? list.nextTime()), value: note))
        }
        return notes
    }

    /// A note that an entry waits for another reason now.
    func note(
        _ remote: Record, of entry: Entry, waitingBecause reason: PendingConflict.Reason
    ) throws(StoreError) -> SystemNote {
        SystemNote(
            in: try list.home(), key: list.key(at: entry.time),
            value: Self.encoded(remote, entry.peer, reason))
    }

    /// Notes that take entries out of the book.
    func notes(removing entries: [Entry]) throws(StoreError) -> [SystemNote] {
        guard !entries.isEmpty, let home = try list.existing() else { return [] }
        return entries.map { SystemNote(in: home, key: list.key(at: $0.time), value: nil) }
    }

    /// Lets go of what waits and has been superseded by what is here, without asking anybody.
    /// O(what waits).
    ///
    /// - Parameter disputed: ids under which a dot may name two writes: what waits under one of
    ///   them stays.
    static func forgetSuperseded(
        in dataset: Dataset, disputed: Set<ReplicaID>
    ) throws(StoreError) {
        let book = try PendingBook(dataset)
        var superseded: [Entry] = []
        for entry in book.entries where !disputed.contains(entry.version.dot.replica) {
            let local = try dataset.storedVersion(of: entry.key)
            if local?.version.vector.contains(entry.version.dot) ?? false {
                superseded.append(entry)
            }
        }
        guard !superseded.isEmpty else { return }
        var batch = ReplicationBatch()
        batch.notes = try book.notes(removing: superseded)
        _ = try dataset.replicate(batch)
    }

    // MARK: - As bytes

    private static let form: UInt8 = 1

    private static func encoded(
        _ remote: Record, _ peer: ReplicaID, _ reason: PendingConflict.Reason
    ) -> [UInt8] {
        var writer = VersionWriter()
        writer.plain { $0.put(form) }
        writer.putReplica(peer)
        writer.plain {
            switch reason {
            case .left: $0.put(0)
            case .stopped: $0.put(1)
            case .failed(let text):
                $0.put(2)
                $0.putText(text)
            }
            $0.putBytes(remote.key)
        }
        writer.putVersion(remote.version)
        writer.plain {
            $0.putVarint(remote.syncCount.rawValue)
            $0.putVarint(remote.expiresAt ?? 0)
            $0.put(remote.value == nil ? 0 : 1)
            if let value = remote.value { $0.putBytes(value) }
        }
        return writer.bytes
    }

    /// nil if the bytes are no such entry: it then waits for a version that knows its form.
    ///
    /// - Parameter wanted: nil also if it is of another key.
    private static func decode(
        _ time: HybridTime, _ bytes: [UInt8], of wanted: [UInt8]? = nil
    ) -> Found? {
        do throws(SyncError) {
            var reader = VersionReader(bytes)
            guard try reader.takeCode() == form else { return nil }
            let peer = try reader.takeReplica()
            let reason = try reader.takeReason()
            let key = try reader.plain { reader throws(SyncError) in
                try reader.takeRange("key", max: Limits.keyBytesMax)
            }
            if let wanted, !bytes[key].elementsEqual(wanted) { return nil }
            let version = try reader.takeVersion()
            let syncCount = try reader.takeSyncCount()
            let expiresAt = try reader.takeExpiry()
            var value: Range<Int>?
            if try reader.takeFlag() {
                value = try reader.plain { reader throws(SyncError) in
                    try reader.takeRange("value", max: Limits.valueBytesMax)
                }
            }
            try reader.finish()
            let entry = Entry(
                time: time, peer: peer, reason: reason, key: Array(bytes[key]),
                version: version, byteCount: bytes.count)
            return Found(
                entry: entry, bytes: bytes, syncCount: syncCount, expiresAt: expiresAt,
                value: value)
        } catch {
            return nil
        }
    }
}

extension VersionReader {
    fileprivate mutating func takeReason() throws(SyncError) -> PendingConflict.Reason {
        switch try takeCode() {
        case 0: return .left
        case 1: return .stopped
        case 2:
            return .failed(
                try plain { reader throws(SyncError) in
                    try reader.takeText("reason", max: SyncLimits.reasonBytesMax)
                })
        case let other: throw .badMessage("\(other) is no reason to wait")
        }
    }
}

extension Dataset {
    /// Whether others have anything that is neither here nor superseded by what is here, and will
    /// not come by itself. Then nobody's vector may be joined into ours.
    func holdsBackVectors() throws(StoreError) -> Bool {
        // Also what a later version of this module has noted, and this one cannot read.
        guard try TimedNotes(which: .pending, dataset: self).isEmpty() else { return true }
        return try !FailedBook.list(of: self, .incoming).isEmpty()
    }
}
