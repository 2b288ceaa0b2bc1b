// Opening beside a writer in another process.
//
// The writer seals, merges, removes and renames while we read the names, and it uses the file of a
// sealed log again, under another name, and stores over what we may be reading. No lock is shared
// with it, since a reader changes nothing and must never make a writer wait. What holds instead:
//
// - A sealed segment never changes, and its number is never used again. Once it is open it stays,
//   though its name goes.
// - A log may be used again only after a manifest has taken its place that no longer names it as
//   one that counts. So logs are copied, not mapped; and if the manifest still has the same oldest
//   log when all of them have been copied, no byte of the copies is of a later use.
// - What the writer appends meanwhile is there whole or not at all, as after a crash.
//
// So an opening fails only because the writer went on, and then there is another manifest; it is
// read, and the opening done again. Each attempt is of use to somebody: the writer has sealed a log
// since the last one.

extension Engine {
    /// Attempts although the manifest is still the same: a log that the writer makes shorter as it
    /// closes, or appends to while it is copied, may look damaged once. Real damage stays.
    private static let repeatedAttemptsMax = 3

    /// Opens without a lock, and changes no byte.
    ///
    /// - Throws: `locked` if the writer was always faster.
    static func openReadOnly(
        at path: String, _ options: StoreOptions, _ storage: any Storage,
        _ events: EventDelivery
    ) throws(StoreError) -> Engine {
        var repeated = 0
        var last = ""
        for _ in 0..<Limits.readOnlyAttemptsMax {
            let manifest = try Self.manifest(at: path, storage)
            do {
                return try load(path, options, storage, nil, manifest, events)
            } catch {
                guard error.code == .corruption else { throw error }
                last = error.message
                if try Self.manifest(at: path, storage) == manifest {
                    repeated += 1
                    guard repeated < repeatedAttemptsMax else { throw error }
                }
            }
        }
        throw StoreError(
            .locked,
            "the process that writes the store has sealed a log during each of "
                + "\(Limits.readOnlyAttemptsMax) attempts to open it; try again when it writes "
                + "less. The last one ended so: \(last)",
            location: StoreError.Location(path: path))
    }
}

extension EngineState {
    /// After the logs have been copied.
    ///
    /// - Throws: `corruption` if one of them may have been used again meanwhile.
    func checkLogsStillCount() throws(StoreError) {
        let present = try Self.manifest(at: path, storage)
        guard present.identity == manifest.identity, present.oldestLog == manifest.oldestLog else {
            throw Malformed("a log was sealed while the store was opened")
                .error(in: filePath(FileName.log(manifest.oldestLog)), at: nil)
        }
    }
}
