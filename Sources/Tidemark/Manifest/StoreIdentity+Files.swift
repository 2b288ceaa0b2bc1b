extension StoreIdentity {
    /// Of the store whose files lie in a directory: as the manifest says, or else the first file
    /// with a whole header, or else the first that can be known in spite of its damage: see
    /// ``FileHeader/likelyIdentity(in:)``. nil if there is none. O(files).
    ///
    /// - Throws: `inputOutput` if the directory or a file cannot be read now, which does not tell.
    static func found(
        inDirectory path: String, storage: any Storage
    ) throws(StoreError) -> StoreIdentity? {
        let files = try storage.listDirectory(path).filter { name in
            [".seg", ".log", ".val"].contains { FileName.number(in: name, ending: $0) != nil }
        }
        let names = [Manifest.fileName] + files.sorted()
        for name in names {
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
        for name in names {
            let found = try unlessDamaged { () throws(StoreError) in
                try likely(inFile: "\(path)/\(name)", storage)
            }
            if let found = found ?? nil { return found }
        }
        return nil
    }

    private static func likely(
        inFile path: String, _ storage: any Storage
    ) throws(StoreError) -> StoreIdentity? {
        let file = try storage.openFile(path, .read)
        let all = unsafe ByteView(try file.mapForReading())
        // What the disk cannot read is an error here, and not a signal below.
        try file.populate(offset: 0, count: all.count)
        return withExtendedLifetime(file) { FileHeader.likelyIdentity(in: all) }
    }
}
