import Tidemark

/// What is known of identities, for parts of the hub that need just this of them.
protocol PoolDirectory: Sendable {
    /// The pool of an identity; nil if there is none of that id. It is never another one.
    func pool(of identity: IdentityID, in store: Store) throws(StoreError) -> PoolID?

    /// Identities of a pool behind a given one, in the order of their ids; none at the end.
    func identityIDs(
        of pool: PoolID, after identity: IdentityID?, limit: Int, in store: Store
    ) throws(StoreError) -> [IdentityID]
}

extension IdentityDirectory: PoolDirectory {
    func pool(of identity: IdentityID, in store: Store) throws(StoreError) -> PoolID? {
        try self.identity(identity, in: store)?.pool
    }
}
