extension StoreIdentity {
    /// Of the store whose files lie in a directory: as the manifest says, or else the first file
    /// with a whole header. nil if there is none. O(files).
    ///
    /// - Throws: `inputOutput` if the directory or a file cannot be read now, which does not tell.
    static func found(
        inDirectory path: String, storage: any Storage
    ) throws(StoreError) -> StoreIdentity? {
        let files = try storage.listDirectory(path).filter { name in
            [".seg", ".log", ".val"].contains { FileName.number(in: name, ending: $0) != nil }
        }
        for name in [Manifest.fileName] + files.sorted() {
            let head = try unlessDamaged { () throws(StoreError) in
                let file = try storage.openFile("\(path)/\(name)", .read)
                let count = min(try file.size(), UInt64(FileHeader.byteCount))
                return try file.bytes(Int(count), at: 0)
            }
            let found = unsafe head?.withUnsafeBytes {
                FileHeader.identity(in: unsafe ByteView($0))
            }
            if let found { return found }
        }
        return nil
    }
}
