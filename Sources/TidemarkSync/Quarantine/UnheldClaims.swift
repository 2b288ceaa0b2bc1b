import Tidemark

// Why what an exchange writes claims less than what the application writes.
//
// A write of the application descends from all that its dataset's vector claims, and with it from
// what is held of its key: whoever writes beside a held write overwrites it (see *Writes from the
// future* in the article on conflicts). That is the application's word.
//
// The store makes writes, too, that are nobody's word on what is held: the outcome of a conflict, a
// record that is written anew because its dot is in doubt or because it has to win over one that is
// later, an outcome that is decided by hand long after, or once more by another policy. Each goes
// by the versions that it was made of. If it claimed the whole vector, a held write of its key
// would be taken for overwritten here, and wherever else it is held, without that anybody had read
// it.
//
// So such a write claims of each replica, beside those versions, no more than what came before the
// first write of it that is held of the key. With that, and with the record that it replaces, it
// has still seen every write to its key that the vector claims, but for those that are held.
//
// What is read of the key before, and what it is that is held, need not be of one moment: what the
// vector claims when it is looked at is held, or among the records, when the list is read; and if a
// record is another one by the time of the batch, nothing of the batch is applied.

/// What the dataset claims of single keys without what is held of them.
struct UnheldClaims {
    private let vector: VersionVector
    private let held: [[UInt8]: [Dot]]

    /// To be made after the records were read that a write goes by. O(held), and memory for the
    /// keys of all that is.
    init(_ dataset: Dataset) throws(StoreError) {
        // In this order: see above.
        vector = try dataset.vector
        held = try QuarantineBook(dataset).dotsByKey()
    }

    /// What a write to a key may claim beside the versions that it is made of.
    subscript(key: [UInt8]) -> VersionVector { vector.before(held[key] ?? []) }
}

extension ReplicationBatch {
    /// The same, whose new writes claim nothing that is held of their keys, unless they say so
    /// themselves. O(held), and O(1) if none of its writes is new.
    func claimingNothingHeld(in dataset: Dataset) throws(StoreError) -> ReplicationBatch {
        guard writes.contains(where: { $0.isNew }) else { return self }
        let claims = try UnheldClaims(dataset)
        var batch = self
        batch.writes = writes.map { $0.claiming(claims[$0.key]) }
        return batch
    }
}
