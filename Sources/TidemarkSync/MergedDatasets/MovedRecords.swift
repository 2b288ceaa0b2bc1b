import Tidemark

// What was moved out of a dataset must be with a peer before that peer hears that it is gone from
// there: until then the peer would have it nowhere, and nobody would if those that have it in the
// other dataset were lost. A mark says where records went, and nothing of the dataset is told to a
// peer, pushed or pulled, before the peer has the other one as far as the mark says. That holds
// whoever exchanges it, and when: after an exchange was cut off, beside one that moves records at
// this moment, and where nobody is asked. Each side tells the other one of its marks, and who hears
// of one has the records in the other dataset by then and makes a mark of its own: it holds for
// whomever it tells of the deletions next.
//
// Marks are among the notes of merged datasets, under the name of the dataset from which the
// records went, a byte 1 and the name of the one that has them. The value is form (1) and 8 bytes:
// the count, in the order of change of the one that has them, up to which it has all that went
// there. It is 2^64 - 1 until all have gone, also if that was broken off, and then stands for
// whatever that one has. Marks of other forms are passed by. A mark stays, as all does that is
// known of a dataset that was deleted. If the one that has the records is deleted, they go with it,
// and the mark means nothing. Nor does one that leads back to where it began, over others if need
// be: of two datasets each would wait for the other.

extension Dataset {
    /// Marks that records go from here into another dataset, before the first one does.
    func beginMoving(into target: Dataset) throws(StoreError) {
        try mark(target, through: SyncCount(rawValue: .max))
    }

    /// Notes that no more go, if any did.
    func endMoving(into target: Dataset) throws(StoreError) {
        guard let marks = try store.existingSystemDataset(.merged),
            try marks.get(MovedMark.key(name, target.name)) != nil
        else { return }
        try mark(target, through: try target.knowledge().syncCount)
    }

    private func mark(_ target: Dataset, through: SyncCount) throws(StoreError) {
        let marks = try store.systemDataset(.merged)
        _ = try marks.put(
            MovedMark(through: through).encoded, for: MovedMark.key(name, target.name))
    }

    /// Notes that records went from here into other datasets, of which all is here by now that went
    /// there. Names of datasets that are not here are passed over.
    func noteMoved(into names: [String]) throws(StoreError) {
        guard !names.isEmpty else { return }
        let known = try marks()
        for name in names where name != self.name {
            guard let target = try store.existingDataset(name) else { continue }
            let through = try target.knowledge().syncCount
            let noted = known.first { $0.target.name == name }?.through ?? .zero
            if noted < through { try mark(target, through: through) }
        }
    }

    /// Datasets into which records went from here, in the order of their names, at most
    /// ``SyncLimits/mergedDatasetsMax``. O(log n + marks), and O(1) in a store that has no marks.
    func movedInto() throws(StoreError) -> [String] {
        Array(try marks().map(\.target.name).sorted().prefix(SyncLimits.mergedDatasetsMax))
    }

    /// Whether records went from here into another dataset in which the peer is not known to have
    /// them. O(log n + marks), and O(1) in a store that has no marks.
    ///
    /// - Parameter namespace: which datasets the peer can have.
    func waitsForMoved(
        with peer: ReplicaID, in namespace: DatasetNamespace = .all
    ) throws(StoreError) -> Bool {
        for (target, through) in try marks() where namespace.contains(target.name) {
            if try !target.isHandedOver(through: through, to: peer), try !target.leads(to: self) {
                return true
            }
        }
        return false
    }

    /// Whether records went from here into a dataset, over others or straight.
    private func leads(to end: Dataset) throws(StoreError) -> Bool {
        var met: Set<String> = [name]
        var due = [self]
        while let dataset = due.popLast() {
            for (target, _) in try dataset.marks() where met.insert(target.name).inserted {
                due.append(target)
            }
        }
        return met.contains(end.name)
    }

    private func marks() throws(StoreError) -> [(target: Dataset, through: SyncCount)] {
        guard let marks = try store.existingSystemDataset(.merged) else { return [] }
        let prefix = MovedMark.prefix(name)
        let cursor = try marks.records(in: .prefix(prefix))
        var found: [(target: Dataset, through: SyncCount)] = []
        while let record = try cursor.next() {
            let bytes = Array(record.key.dropFirst(prefix.count))
            guard let mark = MovedMark(decoding: record.value ?? []),
                let name = String(validating: bytes, as: UTF8.self),
                let target = try store.existingDataset(name)
            else { continue }
            found.append((target, mark.through))
        }
        return found
    }

    /// Whether a peer has all that was here up to a count, or up to now if that is less.
    private func isHandedOver(
        through count: SyncCount, to peer: ReplicaID
    ) throws(StoreError) -> Bool {
        // In this order: what is written meanwhile makes it no better than it is.
        let knowledge = try knowledge()
        let checkpoint = try checkpoint(for: peer)
        if checkpoint.vector.covers(knowledge.vector) { return true }
        guard checkpoint.pushedThrough >= min(count, knowledge.syncCount) else { return false }
        // The position is past what was left out.
        return try !FailedBook(self, .outgoing).holdsBack(from: peer)
    }
}

/// What is marked of records that went from one dataset into another.
private struct MovedMark {
    private static let form: UInt8 = 1
    let through: SyncCount

    init(through: SyncCount) {
        self.through = through
    }

    /// No name of a dataset has a byte as low as this.
    static func prefix(_ source: String) -> [UInt8] { Array(source.utf8) + [1] }

    static func key(_ source: String, _ target: String) -> [UInt8] {
        prefix(source) + Array(target.utf8)
    }

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.put(Self.form)
        writer.putFixed(through.rawValue)
        return writer.bytes
    }

    /// nil if the bytes are no such mark.
    init?(decoding bytes: [UInt8]) {
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            guard try reader.takeByte() == Self.form else { return nil }
            through = SyncCount(rawValue: try reader.takeFixed(UInt64.self))
            try reader.finish()
        } catch {
            return nil
        }
    }
}
