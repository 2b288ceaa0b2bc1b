import Tidemark

// Records that were left out of an exchange. Positions move on past them, so they come again only
// when they are asked for by their keys (incoming) or put at the end of the order of change
// (outgoing). Until then no vector may claim them:
// - while the list of incoming ones is not empty, nobody's vector is joined into ours, as while a
//   conflict waits (`PendingBook`);
// - while the list of outgoing ones for a peer is not empty, no page that it is sent is marked as
//   the last one, so that it does not join our vector. It keeps what it was sent all the same;
// - nor has any answer to its pulls a vector, since its position is past what was left out. A
//   bundle may reach anyone, and has none while there is any entry.
// That holds for dropped ones, too: a claim would make others believe that they have what nobody
// gave them.
//
// An entry is under the dataset's name, a byte for the direction (0 incoming, 1 outgoing) and the
// time since when. Its value is
//
//   form (1), state (0 waiting, 1 due, 2 dropped, 3 due and put at the end, 4 due and given anew),
//   replica: peer, counted key, replica and varint counter: the write, counted code, counted
//   message, varint attempts, 8 bytes: last time
//
// An outgoing one is due as 3. Where 1 stands it was to be sent by itself, by an earlier version of
// this module: it waits.

/// What failed in one direction, as of the moment at which this was made.
struct FailedBook {
    /// The one that has failed for longest first.
    private(set) var entries: [FailedRecord] = []
    /// Whether there is anything that this version cannot read.
    private(set) var hasOthers = false
    private let direction: FailedRecord.Direction
    private let list: TimedNotes
    let dataset: Dataset

    /// O(entries).
    init(_ dataset: Dataset, _ direction: FailedRecord.Direction) throws(StoreError) {
        self.dataset = dataset
        self.direction = direction
        let list = Self.list(of: dataset, direction)
        var entries: [FailedRecord] = []
        var hasOthers = false
        try list.forEach { (time, bytes) throws(StoreError) in
            let entry = FailedRecord(
                dataset: dataset.name, direction: direction, since: time, decoding: bytes)
            if let entry { entries.append(entry) } else { hasOthers = true }
            return true
        }
        self.list = list
        self.entries = entries
        self.hasOthers = hasOthers
    }

    static func list(
        of dataset: Dataset, _ direction: FailedRecord.Direction
    ) -> TimedNotes {
        TimedNotes(
            which: .failed, dataset: dataset,
            part: direction == .incoming ? 0 : SystemDataset.outgoingFailures)
    }

    var isEmpty: Bool { entries.isEmpty && !hasOthers }

    /// Of each key the version that failed with a peer.
    func held(from peer: ReplicaID) -> [[UInt8]: Dot] {
        var held: [[UInt8]: Dot] = [:]
        for entry in entries where entry.peer == peer { held[entry.key] = entry.write }
        return held
    }

    /// Whether anything failed with a peer, and is not known to have arrived. What a later version
    /// of this module has noted counts, too.
    func holdsBack(from peer: ReplicaID) -> Bool {
        hasOthers || entries.contains { $0.peer == peer }
    }

    // MARK: - Changing

    /// Notes that put failures into the book; a record of a key and a peer is there once.
    ///
    /// - Returns: nil if they are too many.
    func notes(
        adding failures: [(key: [UInt8], write: Dot, error: SyncError)], with peer: ReplicaID
    ) throws(StoreError) -> [SystemNote]? {
        guard !failures.isEmpty else { return [] }
        let entriesByKey = Dictionary(grouping: entries.filter { $0.peer == peer }, by: \.key)
        var count = entries.count
        var notes: [SystemNote] = []
        for (key, write, error) in failures {
            let time = list.nextTime()
            if let known = entriesByKey[key]?.first {
                // What was dropped stays so, as long as it is the same.
                let isDropped = known.state == .dropped && known.write == write
                notes.append(
                    try note(
                        known.changed(
                            write: write, error, at: time,
                            state: isDropped ? .dropped : .waiting)))
                continue
            }
            count += 1
            let message = error.message.cut(toBytes: SyncLimits.reasonBytesMax)
            notes.append(
                try note(
                    FailedRecord(
                        dataset: dataset.name, key: key, direction: direction, write: write,
                        peer: peer, code: error.code, message: message, attempts: 1, since: time,
                        last: time, state: .waiting)))
        }
        return count <= SyncLimits.failedMax ? notes : nil
    }

    /// Puts an entry into another state by compare-and-set: an exchange may change it meanwhile, or
    /// take it out. O(log n).
    ///
    /// - Returns: false if it is there no more.
    static func change(
        _ failed: FailedRecord, to state: FailedRecord.State, in dataset: Dataset
    ) throws(StoreError) -> Bool {
        let home = try list(of: dataset, failed.direction).home()
        while true {
            guard let (line, known) = try stored(failed, in: dataset) else { return false }
            do throws(StoreError) {
                try home.put(
                    known.changed(state: state).encoded, for: line.key, ifAt: line.version.dot)
                return true
            } catch {
                guard error.code == .versionMismatch else { throw error }
            }
        }
    }

    /// An entry as it is now, and the record that it is in; nil if it is there no more. O(log n).
    static func stored(
        _ failed: FailedRecord, in dataset: Dataset
    ) throws(StoreError) -> (line: Record, entry: FailedRecord)? {
        let list = list(of: dataset, failed.direction)
        guard let line = try list.existing()?.record(for: list.key(at: failed.since)),
            let bytes = line.value,
            let known = FailedRecord(
                dataset: dataset.name, direction: failed.direction, since: failed.since,
                decoding: bytes),
            known.write == failed.write, known.key == failed.key
        else { return nil }
        return (line, known)
    }

    mutating func remove(_ ended: [FailedRecord]) {
        let times = Set(ended.map(\.since))
        entries.removeAll { times.contains($0.since) }
    }

    /// Lets go of incoming failures that what is here has superseded, and of those of peers that
    /// were given up. O(entries).
    ///
    /// - Parameters:
    ///   - disputed: ids under which a dot may name two writes: what failed under one of them is
    ///     not taken for superseded.
    ///   - peer: whose exchange this is: it has come again, or is yet to be known.
    static func forgetSuperseded(
        in dataset: Dataset, disputed: Set<ReplicaID>, peer: ReplicaID
    ) throws(StoreError) {
        let book = try FailedBook(dataset, .incoming)
        guard !book.entries.isEmpty else { return }
        let givenUp = try dataset.givenUpPeers(besides: peer)
        var superseded: [FailedRecord] = []
        for entry in book.entries {
            let local = try dataset.storedVersion(of: entry.key)
            let isSeen = local?.version.vector.contains(entry.write) ?? false
            if isSeen && !disputed.contains(entry.write.replica) || givenUp.contains(entry.peer) {
                superseded.append(entry)
            }
        }
        guard !superseded.isEmpty else { return }
        var batch = ReplicationBatch()
        batch.notes = try book.notes(removing: superseded)
        _ = try dataset.replicate(batch)
    }

    func note(_ entry: FailedRecord) throws(StoreError) -> SystemNote {
        SystemNote(in: try list.home(), key: list.key(at: entry.since), value: entry.encoded)
    }

    func notes(removing entries: [FailedRecord]) throws(StoreError) -> [SystemNote] {
        guard !entries.isEmpty, let home = try list.existing() else { return [] }
        return entries.map { SystemNote(in: home, key: list.key(at: $0.since), value: nil) }
    }
}

extension Dataset {
    /// What failed with them is over: if they come again no position of before counts, so that all
    /// they have, or lack, is exchanged anew.
    ///
    /// - Parameter peer: of this exchange; it has come again.
    func givenUpPeers(besides peer: ReplicaID) throws(StoreError) -> Set<ReplicaID> {
        try retiredPeers().subtracting([peer])
    }
}

extension FailedRecord {
    private static let form: UInt8 = 1
    private static let states: [State] = [.waiting, .due, .dropped]
    private static let dueAtEnd: UInt8 = 3
    private static let dueAnew: UInt8 = 4

    private var stateCode: UInt8 {
        if state == .due, direction == .outgoing { return Self.dueAtEnd }
        if state == .due, isGivenAnew { return Self.dueAnew }
        return UInt8(Self.states.firstIndex(of: state) ?? 0)
    }

    private static func state(_ code: UInt8, _ direction: Direction) -> State? {
        if code == dueAtEnd { return direction == .outgoing ? .due : nil }
        if code == dueAnew { return direction == .incoming ? .due : nil }
        guard let state = states.dropFirst(Int(code)).first else { return nil }
        return state == .due && direction == .outgoing ? .waiting : state
    }

    var encoded: [UInt8] {
        var writer = VersionWriter()
        writer.plain {
            $0.put(Self.form)
            $0.put(stateCode)
        }
        writer.putReplica(peer)
        writer.plain { $0.putBytes(key) }
        writer.putReplica(write.replica)
        writer.plain {
            $0.putVarint(write.counter)
            $0.putText(code.description)
            $0.putText(message)
            $0.putCount(attempts)
            $0.putFixed(last.rawValue)
        }
        return writer.bytes
    }

    /// nil if the bytes are no such entry.
    fileprivate init?(
        dataset: String, direction: Direction, since: HybridTime, decoding bytes: [UInt8]
    ) {
        do throws(SyncError) {
            var reader = VersionReader(bytes)
            guard try reader.takeCode() == Self.form else { return nil }
            let code = try reader.takeCode()
            guard let state = Self.state(code, direction) else { return nil }
            let peer = try reader.takeReplica()
            let key = try reader.plain { reader throws(SyncError) in
                try reader.takeBytes("key", max: Limits.keyBytesMax)
            }
            let replica = try reader.takeReplica()
            let counter = try reader.plain { reader throws(SyncError) in try reader.takeVarint() }
            let (name, message) = try reader.plain { reader throws(SyncError) in
                let name = try reader.takeText("error code", max: 64)
                let text = try reader.takeText("message", max: SyncLimits.reasonBytesMax)
                return (name, text)
            }
            let attempts = try reader.takeNumber(max: .max)
            let last = try reader.plain { reader throws(SyncError) in
                try reader.takeFixed(UInt64.self)
            }
            try reader.finish()
            self.init(
                dataset: dataset, key: key, direction: direction,
                write: Dot(replica: replica, counter: counter), peer: peer,
                code: SyncError.Code.named(name), message: message, attempts: attempts,
                since: since, last: HybridTime(rawValue: last), state: state)
            isGivenAnew = code == Self.dueAnew
        } catch {
            return nil
        }
    }
}

extension SyncError.Code {
    /// Those with which a record may fail; any other is the peer's own.
    fileprivate static func named(_ name: String) -> SyncError.Code {
        let known: [SyncError.Code] = [.tooLarge, .recordRefused, .conflictPending]
        return known.first { $0.description == name } ?? .peerFailed
    }
}
