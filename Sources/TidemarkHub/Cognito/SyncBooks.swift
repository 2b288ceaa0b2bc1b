import Synchronization
import Tidemark

/// What the operations of the API share, in memory and bounded: one of a hub.
final class SyncBooks: Sendable {
    let cache: TotalsCache
    let sessions = SyncSessionCounter()
    private let creators: [Creator]
    private let isInUse: @Sendable (IdentityID, Store) throws -> Bool

    /// Holds back whoever would create a dataset of an identity while another one does.
    private final class Creator: Sendable {
        let lock = Mutex(())
    }

    /// - Parameter isInUse: whether an identity may have datasets, as the store has it now.
    init(
        cache: TotalsCache = TotalsCache(),
        isInUse: @escaping @Sendable (IdentityID, Store) throws -> Bool = { _, _ in true }
    ) {
        self.cache = cache
        self.isInUse = isInUse
        creators = (0..<64).map { _ in Creator() }
    }

    /// Refuses the first write to a dataset of an identity that has become a part of another one
    /// since the call began: nobody would ever see it again. Asked once the dataset is there: a
    /// merge that is noted later finds it, and moves it or makes the write fail.
    ///
    /// - Throws: `notAuthorized` as an `APIFailure`, and what the store throws.
    func checkInUse(_ identity: IdentityID, in store: Store) throws {
        guard try isInUse(identity, store) else {
            throw APIFailure(
                .notAuthorized, "Identity '\(identity)' is not in use any more; get another id")
        }
    }

    /// The dataset, created if there is none and the identity may have one more. Waits for the
    /// disk, and for others who do the same: for writer threads.
    ///
    /// - Throws: `limitExceeded` as an `APIFailure`, and what the store throws.
    func dataset(
        _ name: APIDatasetName, of identity: IdentityID, _ limits: HubLimits, in store: Store
    ) throws -> Dataset {
        let storeName = StoreNames.dataset(name, of: identity)
        if let dataset = try store.existingDataset(storeName) { return dataset }
        let creator = creators[Int(UInt(bitPattern: identity.hashValue) % UInt(creators.count))]
        return try creator.lock.withLock { _ in
            if let dataset = try store.existingDataset(storeName) { return dataset }
            let limit = limits.datasetsPerIdentityMax
            let names = try store.datasetNames(
                prefix: StoreNames.prefix(of: identity), limit: limit)
            guard names.count < limit else {
                throw APIFailure(
                    .limitExceeded,
                    "the identity has \(limit) datasets, and may have no more; delete one")
            }
            if try store.datasetForSync(storeName, creating: false) == nil {
                try checkNewName(of: identity, limits, in: store)
            }
            return try store.dataset(storeName)
        }
    }

    private func checkNewName(
        of identity: IdentityID, _ limits: HubLimits, in store: Store
    ) throws {
        let limit = limits.datasetNamesPerIdentityMax
        let names = try store.datasetNamesForSync(
            prefix: StoreNames.prefix(of: identity), limit: limit)
        guard names.count < limit else {
            throw APIFailure(
                .limitExceeded,
                "the identity has had \(limit) datasets, deleted ones included, and may have no "
                    + "more; use one of their names")
        }
    }
}
