/// One moment of a whole store as files: its sealed segments, and the logs up to where they had
/// been written then. It holds the segments open and the logs mapped, so that all of it can be
/// copied whatever the store does with the names meanwhile.
struct StoreImage {
    let path: String
    let view: ReadView
    /// Oldest first, each with the bytes of it that belong to the moment.
    let logs: [(log: LogSegment, byteCount: Int)]
    /// Of the same moment as the segments.
    let manifest: Manifest

    /// Bytes of all files.
    var byteCount: UInt64 {
        let sealed = view.segments.reduce(0) { $0 + $1.fileSize }
        let values = view.valueFiles.reduce(0) { $0 + $1.fileSize }
        return logs.reduce(sealed + values) { $0 + UInt64($1.byteCount) }
    }
}

extension Engine {
    /// The present moment as files.
    ///
    /// Sealing and merging change the manifest first and the view a moment later; in between
    /// neither says what the other does, and this waits.
    func image() throws(StoreError) -> StoreImage {
        try withLock { (held) throws(StoreError) in
            while true {
                try held.checkOpen()
                let view = currentView
                if view.segments.map(\.number) == held.manifest.segments.map(\.number) {
                    return StoreImage(
                        path: path, view: view,
                        logs: view.memtables.reversed().map { ($0.log, $0.log.appended) },
                        manifest: held.manifest)
                }
                held.wait()
            }
        }
    }

    /// Makes everything of the moment durable in this store, so that a copy of it never holds a
    /// write that is lost here and whose dot is then used again.
    func makeDurable(_ image: StoreImage) throws(StoreError) {
        guard options.isReadOnly else { return try syncAll() }
        // The writer of these files is another process, or none. What was read from them was in
        // the kernel's hands, and is on disk after this.
        for (log, byteCount) in image.logs where byteCount > 0 {
            try log.sync(through: byteCount)
        }
    }
}
