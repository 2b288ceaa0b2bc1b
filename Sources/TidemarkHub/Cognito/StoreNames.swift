/// What the datasets of identities are called in the hub's store.
///
/// An identity's dataset is called by the identity's id, a colon and the name that clients use. An
/// id has exactly one colon and never begins with `hub:`, as the hub's own datasets do: so whatever
/// an identity calls its datasets, none of them is another's or the hub's.
enum StoreNames {
    /// Of the hub's own datasets.
    static let ownPrefix = "hub:"

    /// At most 184 bytes.
    static func dataset(_ name: APIDatasetName, of identity: IdentityID) -> String {
        prefix(of: identity) + name.text
    }

    /// All names that begin so are of that identity, and of nobody else.
    static func prefix(of identity: IdentityID) -> String {
        identity.text + ":"
    }

    /// All names that begin so are of that space, and of nobody else: no id has two colons in a
    /// row, and the name of a space has none.
    static func prefix(ofSpace space: String) -> String {
        "space::\(space):"
    }

    /// What clients call a dataset; nil if it is not one of that identity.
    static func apiName(of storeName: String, _ identity: IdentityID) -> APIDatasetName? {
        let prefix = prefix(of: identity)
        guard storeName.hasPrefix(prefix) else { return nil }
        return APIDatasetName(String(storeName.dropFirst(prefix.count)))
    }
}
