/// The names of directories that are on their way to a name of their own, or have lost it.
///
/// A store, a backup or a repaired store is made beside the name that it is to have, or within the
/// empty directory that it is to fill. A store that was repaired in its place is kept beside it.
package enum StagingName {
    /// Within the directory that is to be filled.
    package static let within = ".partial"

    /// Beside the name that it is to have.
    package static func beside(_ path: String, process: Int32) -> String {
        "\(path).partial-\(process)"
    }

    /// Where a damaged store is kept; the number is not 1 where that is taken.
    package static func kept(_ path: String, number: Int = 1) -> String {
        number == 1 ? "\(path).damaged" : "\(path).damaged-\(number)"
    }

    /// What stands beside a name and may be what belongs there. One that is kept comes first.
    static func leftover(of name: String, among names: [String]) -> String? {
        names.filter { isLeftover($0, of: name) }.min()
    }

    private static func isLeftover(_ other: String, of name: String) -> Bool {
        if other == kept(name) { return true }
        return ["\(name).damaged-", "\(name).partial-"].contains { stem in
            guard other.hasPrefix(stem) else { return false }
            let digits = other.dropFirst(stem.count)
            return !digits.isEmpty && digits.utf8.allSatisfy { $0 >= 48 && $0 <= 57 }
        }
    }
}

extension StoreError {
    /// - Parameters:
    ///   - path: where no store is.
    ///   - other: the name of what stands beside it.
    static func unfinished(_ path: String, beside other: String) -> StoreError {
        let isKept = other.hasPrefix(StagingName.kept(FileName.last(of: path)))
        let remedy =
            isKept
            ? "where a repair keeps the damaged store; give that its name back and repair it "
                + "again, or move it away to begin an empty store"
            : "which a repair, restore or backup makes or has left unfinished; let it end, or "
                + "remove what is left to begin an empty store"
        return StoreError(
            .notAStore, "there is no store, but beside it stands \(other), \(remedy)",
            location: Location(path: path))
    }

    /// - Parameter path: a directory that was to be filled.
    static func unfinished(_ path: String) -> StoreError {
        StoreError(
            .notAStore,
            "the directory holds no store, but \(StagingName.within), which a repair, restore or "
                + "backup makes or has left unfinished; let it end, or empty the directory",
            location: Location(path: path))
    }
}
