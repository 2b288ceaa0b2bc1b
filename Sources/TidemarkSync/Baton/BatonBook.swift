import Tidemark

/// All batons of one dataset as a store remembers them, in its own dataset ``SystemDataset/batons``
/// under the dataset's name, a zero and the replica's id.
struct BatonBook {
    private let dataset: Dataset
    private let store: Store
    private(set) var records: [ReplicaID: BatonRecord] = [:]
    /// The dots of the records, by which a change is told that somebody else made meanwhile.
    private var dots: [ReplicaID: Dot] = [:]

    /// O(replicas that have written to the dataset).
    init(_ dataset: Dataset) throws(StoreError) {
        self.dataset = dataset
        store = dataset.store
        guard let book = try store.existingSystemDataset(.batons) else { return }
        let prefix = SystemDataset.prefix(of: dataset.name)
        let cursor = try book.records(in: .prefix(prefix))
        while let line = try cursor.next() {
            guard let replica = Self.replica(in: line.key.dropFirst(prefix.count)) else { continue }
            records[replica] = BatonRecord(decoding: line.value ?? [])
            dots[replica] = line.version.dot
        }
    }

    /// What is shown to others: the newest of each replica. A disputed one is not, unless it says
    /// that there were two: whoever drew it after the fork must not be taken for the other writer.
    var batons: [Baton] {
        records.filter { $1.standing != .disputed || $1.hasMetTwo }
            .compactMap { $1.baton(of: $0) }
            .sorted { $0.replica < $1.replica }
    }

    /// Ids of which what lies here is to be exchanged anew: former ones of this store, and those of
    /// others that turned out to be contested.
    var disputed: [ReplicaID] {
        records.filter { $1.standing == .disputed }.map(\.key).sorted()
    }

    /// Whether two stores wrote, or may have written, under an id: what lies here under it from
    /// before that was settled may be another write than the one that others know by its dot.
    func wasDisputed(_ id: ReplicaID) -> Bool {
        records[id]?.standing ?? .plain != .plain
    }

    /// Ids of this store under which it has written all that there is, unless it went back in time
    /// unnoticed. One that it gave up in copied files is as good as another store's.
    private var claimedIDs: [ReplicaID] {
        let closed = store.closedReplicaIDs
        return [store.replicaID] + store.formerReplicaIDs.filter { !closed.contains($0) }
    }

    /// Those of them under which nobody else is known to write.
    private var ownIDs: [ReplicaID] {
        claimedIDs.filter { records[$0]?.standing ?? .plain == .plain }
    }

    // MARK: - Looking

    /// The ids of this store of which a peer has seen writes that are not its own.
    ///
    /// - Parameters:
    ///   - theirs: what the peer has seen.
    ///   - ours: what the dataset has seen here.
    func forked(
        _ shown: [Baton], _ theirs: VersionVector, _ ours: VersionVector
    ) -> [ReplicaID] {
        let batons = Dictionary(shown.map { ($0.replica, $0) }) { first, _ in first }
        return ownIDs.filter { id in
            let isUnknown = batons[id].map { (records[id] ?? BatonRecord()).isForeign($0) }
            return isUnknown ?? false || theirs[id] > ours[id]
        }
    }

    /// Ids, none of this store's own, of which a peer's batons are the first to show that two
    /// stores wrote under them: what was seen here of the one says nothing of the other.
    func contested(_ shown: [Baton]) -> [Baton] {
        let own = Set(claimedIDs)
        return shown.compactMap { baton in
            guard !own.contains(baton.replica), let record = records[baton.replica],
                record.standing != .disputed, record.isNewlyMetTwo(by: baton),
                let known = record.baton(of: baton.replica)
            else { return nil }
            return Baton(
                replica: baton.replica, number: max(known.number, baton.number), random: 0)
        }
    }

    /// What this store drew last under one of its ids, oldest first.
    func drawn(by id: ReplicaID) -> [Baton] {
        (records[id]?.drawn ?? []).map {
            Baton(replica: id, number: $0.number, random: $0.random)
        }
    }

    /// Whether another baton of the same replica and number is known here than one that is shown:
    /// then two stores write under that id.
    func contradicts(_ shown: [Baton]) -> Bool {
        shown.contains { baton in
            guard let known = records[baton.replica]?.baton(of: baton.replica) else { return false }
            return known.number == baton.number && known.random != baton.random
        }
    }

    // MARK: - Changing

    /// Draws a baton for each own id of which writes may leave now that no baton covers. To be
    /// called after the writes were read and before the store is synced, for what it then shows.
    mutating func draw(for leaving: VersionVector) throws(StoreError) {
        guard !store.options.isReadOnly else { return }
        for id in ownIDs where leaving[id] > 0 {
            while leaving[id] > records[id]?.drawn.last?.through ?? 0 {
                // As of now, so that writes that come meanwhile need no other one.
                let through = max(leaving[id], try dataset.vector[id])
                var record = records[id] ?? BatonRecord()
                record.append(
                    BatonRecord.Drawn(
                        number: (record.drawn.last?.number ?? 0) + 1,
                        random: max(1, store.randomNumber()), through: through))
                guard try put(record, of: id) else {
                    self = try BatonBook(dataset)
                    continue
                }
            }
        }
    }

    /// Marks former ids of this store, and contested ones of others, as disputed: what lies here
    /// under them is to be exchanged anew, and none of it counts as seen.
    func dispute(_ ids: [ReplicaID], contested: [Baton]) throws(StoreError) {
        let book = try store.systemDataset(.batons)
        var batch = ReplicationBatch()
        batch.disowned = ids + contested.map(\.replica)
        batch.notes = ids.map { id in
            var record = records[id] ?? BatonRecord()
            record.standing = .disputed
            return SystemNote(in: book, key: key(of: id), value: record.encoded)
        }
        batch.notes += contested.map { baton in
            let record = BatonRecord(
                standing: .disputed,
                drawn: [
                    BatonRecord.Drawn(number: baton.number, random: baton.random, through: 0)
                ])
            return SystemNote(in: book, key: key(of: baton.replica), value: record.encoded)
        }
        _ = try dataset.replicate(batch)
    }

    /// Stores a record unless somebody else changed it meanwhile.
    private mutating func put(
        _ record: BatonRecord, of id: ReplicaID
    ) throws(StoreError) -> Bool {
        let book = try store.systemDataset(.batons)
        do throws(StoreError) {
            dots[id] = try book.put(record.encoded, for: key(of: id), ifAt: dots[id])
        } catch {
            guard error.code == .versionMismatch else { throw error }
            return false
        }
        records[id] = record
        return true
    }

    /// What of a peer's batons is new here, as notes for the batch that stores what came with
    /// them, and that the given ids are disputed no more.
    func notes(
        taking shown: [Baton], settling settled: [ReplicaID]
    ) throws(StoreError) -> [SystemNote] {
        var changed: [ReplicaID: BatonRecord] = [:]
        for id in settled {
            var record = BatonRecord(standing: .foreign)
            // That both lines left their writers is to be remembered and told. Who has something
            // of the line that is given up here may have kept any of its batons.
            if let known = records[id], let last = known.drawn.last {
                if known.hasMetTwo {
                    record.drawn = known.drawn
                } else if shown.contains(where: { known.isContradicted(by: $0, of: id) }) {
                    record.drawn = [BatonRecord.Drawn(number: last.number, random: 0, through: 0)]
                }
            }
            changed[id] = record
        }
        let own = Set(claimedIDs)
        for baton in shown {
            var record = changed[baton.replica] ?? records[baton.replica] ?? BatonRecord()
            // Of an id of its own the store knows better, unless it has given it up.
            guard !own.contains(baton.replica) || record.standing == .foreign else { continue }
            // What says first that there were two is no news to be kept but a dispute to begin.
            // Where none can begin yet, it is to be told again.
            guard contested([baton]).isEmpty else { continue }
            if record.take(baton) { changed[baton.replica] = record }
        }
        guard !changed.isEmpty else { return [] }
        let book = try store.systemDataset(.batons)
        return changed.sorted { $0.key < $1.key }.map { id, record in
            SystemNote(in: book, key: key(of: id), value: record.encoded)
        }
    }

    // MARK: - Keys

    private func key(of replica: ReplicaID) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(SystemDataset.prefix(of: dataset.name))
        writer.putFixed(replica.high)
        writer.putFixed(replica.low)
        return writer.bytes
    }

    private static func replica(in bytes: ArraySlice<UInt8>) -> ReplicaID? {
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            let high = try reader.takeFixed(UInt64.self)
            let low = try reader.takeFixed(UInt64.self)
            try reader.finish()
            return ReplicaID(high: high, low: low)
        } catch {
            return nil
        }
    }
}

extension Dataset {
    /// What is said of the dataset as of the given moment, with the batons that go with it. Draws
    /// those that are due; the store is to be synced afterwards, before it leaves.
    ///
    /// - Parameter isDrawing: false if nobody will keep what is told, so that nothing is written.
    func told(
        _ knowledge: DatasetKnowledge, isDrawing: Bool = true
    ) throws(StoreError) -> PeerKnowledge {
        var book = try BatonBook(self)
        if isDrawing { try book.draw(for: knowledge.vector) }
        var told = PeerKnowledge(knowledge)
        told.batons = book.batons
        return told
    }

    /// A page as it travels, likewise.
    func told(_ page: RecordPage, isDrawing: Bool = true) throws(StoreError) -> RecordPage {
        var book = try BatonBook(self)
        if isDrawing { try book.draw(for: page.knowledge.vector) }
        var told = page
        told.knowledge.batons = book.batons
        return told
    }
}
