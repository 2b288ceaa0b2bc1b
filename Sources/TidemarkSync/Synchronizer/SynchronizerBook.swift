import Tidemark

/// Which datasets are watched.
struct Subscriptions: Hashable, Sendable {
    var names: Set<String> = []
    /// Besides those, all that there are here.
    var isAll = false

    var isEmpty: Bool { names.isEmpty && !isAll }
}

/// What the store remembers of one synchronizer, in its own dataset ``SystemDataset/sync``: its
/// subscriptions, and when it last exchanged what.
///
/// | bytes | of the key |
/// | --- | --- |
/// | 1 | 1: subscribed to a dataset; 2: to all; 3: exchanged a dataset; 4: all; 5: all in full |
/// | 1 | bytes of the synchronizer's name |
/// | n | its name, UTF-8 |
/// | rest | with 1 and 3: the dataset's name |
///
/// The value is empty with 1 and 2, else a time: 8 bytes, little-endian, milliseconds since 1970.
struct SynchronizerBook {
    enum Kind: UInt8 {
        case subscription = 1
        case subscriptionToAll = 2
        case exchange = 3
        case exchangeOfAll = 4
        case fullExchange = 5
    }

    let store: Store
    private let name: [UInt8]

    /// - Throws: `invalidArgument` if no synchronizer can have that name.
    init(_ store: Store, name: String) throws(StoreError) {
        self.store = store
        self.name = Array(name.utf8)
        guard self.name.count <= SyncLimits.synchronizerNameBytesMax else {
            throw StoreError(
                .invalidArgument,
                "a synchronizer's name of \(self.name.count) bytes is too long; give one of at "
                    + "most \(SyncLimits.synchronizerNameBytesMax)")
        }
    }

    func key(_ kind: Kind, _ dataset: String = "") -> [UInt8] {
        [kind.rawValue, UInt8(name.count)] + name + Array(dataset.utf8)
    }

    // MARK: - Subscriptions

    /// O(subscriptions).
    func subscriptions() throws(StoreError) -> Subscriptions {
        var found = Subscriptions()
        guard let book = try store.existingSystemDataset(.sync) else { return found }
        found.isAll = try book.contains(key(.subscriptionToAll))
        let prefix = key(.subscription)
        let cursor = try book.keys(in: .prefix(prefix))
        while let key = try cursor.next() {
            guard let name = String(validating: key.dropFirst(prefix.count), as: UTF8.self) else {
                continue
            }
            found.names.insert(name)
        }
        return found
    }

    /// Writes what is other now, in one batch that survives a power failure.
    func replace(_ before: Subscriptions, by after: Subscriptions) throws(StoreError) {
        guard after != before else { return }
        let book = try store.systemDataset(.sync)
        var batch = WriteBatch()
        for name in after.names.subtracting(before.names).sorted() {
            batch.put([], for: key(.subscription, name), in: book)
        }
        for name in before.names.subtracting(after.names).sorted() {
            batch.delete(key(.subscription, name), in: book)
        }
        if after.isAll, !before.isAll { batch.put([], for: key(.subscriptionToAll), in: book) }
        if before.isAll, !after.isAll { batch.delete(key(.subscriptionToAll), in: book) }
        try store.write(batch, durability: .disk)
    }
}
