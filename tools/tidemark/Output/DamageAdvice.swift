import Tidemark

/// What a damage is and what to do about it, for people: the library's own message says the first,
/// and what helps depends on the file.
struct DamageAdvice {
    /// The name within the store's directory.
    let file: String
    let what: String
    let remedy: String

    /// - Parameter store: the directory.
    init(_ damage: StoreError, of store: String) {
        let path = damage.location?.path ?? ""
        file = path.hasPrefix("\(store)/") ? String(path.dropFirst(store.count + 1)) : path
        // Behind the first semicolon stands what a caller of the library may do.
        what = String(damage.message.prefix { $0 != ";" })
        remedy = damage.code == .inputOutput ? Self.unreadable : Self.remedy(for: file)
    }

    private static let unreadable =
        "copy what can be read to another disk before anything else; then restore or repair there"

    private static func remedy(for file: String) -> String {
        if file.hasSuffix(".seg") || file.hasSuffix(".val") {
            return "heal it from a hub, restore a backup, or repair the store"
        }
        if file.hasSuffix(".log") {
            return "restore a backup and sync, or repair the store, which keeps the other blocks"
        }
        return "restore a backup, or repair the store: records need no manifest to be found"
    }
}
