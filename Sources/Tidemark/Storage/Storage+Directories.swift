internal import Glibc

/// Directories that may be there already, and that may lie in those of others.
extension Storage {
    /// The names within; nil if there is no such directory.
    func namesIfThere(in path: String) throws(StoreError) -> [String]? {
        do throws(StoreError) {
            return try listDirectory(path)
        } catch {
            guard error.code == .notAStore else { throw error }
            return nil
        }
    }

    /// The names beside a file or directory; none if there is no directory for it, or none that
    /// may be read.
    func namesBeside(_ path: String) throws(StoreError) -> [String] {
        do throws(StoreError) {
            return try listDirectory(FileName.parent(of: path))
        } catch {
            guard error.code == .notAStore || error.systemError == EACCES else { throw error }
            return []
        }
    }

    /// Makes the name of a directory durable.
    ///
    /// One that was there before needs it, too: whoever made it may have been stopped just before
    /// this. But a directory may be somebody's own and lie in one that is not (mode 0711, say) and
    /// that only its owner may open. Then whoever made it had to see to its name.
    ///
    /// - Parameter isNew: whether the caller has made it.
    func syncName(of path: String, isNew: Bool) throws(StoreError) {
        do throws(StoreError) {
            try syncDirectory(FileName.parent(of: path))
        } catch {
            guard !isNew, error.systemError == EACCES else { throw error }
        }
    }

    /// Has a directory be there under a durable name. Returns the names within.
    func provideDirectory(_ path: String) throws(StoreError) -> [String] {
        if let names = try namesIfThere(in: path) {
            try syncName(of: path, isNew: false)
            return names
        }
        try createDirectory(path)
        try syncName(of: path, isNew: true)
        return try listDirectory(path)
    }
}
