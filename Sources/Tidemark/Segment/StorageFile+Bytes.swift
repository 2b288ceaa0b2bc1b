// Files that are read and written as arrays: for who stands outside of the store's own formats.

extension StorageFile {
    /// Bytes of the file. Whoever asks has bounded the count before.
    /// - Throws: `corruption` if the file ends before; what the read throws.
    package func bytes(_ count: Int, at offset: UInt64) throws(StoreError) -> [UInt8] {
        let block = unsafe try Block(count: count) { (memory) throws(StoreError) in
            try unsafe read(into: memory, at: offset)
        }
        return block.bytes.array
    }

    /// Writes all of them.
    package func write(bytes: [UInt8], at offset: UInt64) throws(StoreError) {
        try bytes.withBytes { (view) throws(StoreError) in
            try unsafe write(view.buffer, at: offset)
        }
    }
}
