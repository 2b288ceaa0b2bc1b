internal import Synchronization

// How the roster of changes, and what is known of exchanges, outlasts a closing (`KeptRoster`).

extension EngineParts {
    fileprivate static let rosterFile = OneBlockFile(
        kind: .roster, blockKind: .roster, title: "roster", bytesMax: Limits.rosterBytesMax)
}

extension EngineState {
    /// The store as it would be found by who opens it now; nil if more belongs to it than manifest
    /// and active log say. O(log).
    private var keptState: KeptRoster.State? {
        guard sealing.isEmpty, let log = active?.log else { return nil }
        var content = manifest.content
        unsafe content.append(contentsOf: log.bytes.prefix(log.appended).buffer)
        let digest = unsafe content.withUnsafeBytes { unsafe checksum128($0) }
        return KeptRoster.State(
            log: log.number, logBytes: UInt64(log.appended), high: digest.high, low: digest.low)
    }

    fileprivate func resume(_ kept: KeptRoster) -> Bool {
        guard kept.state.log == active?.log.number,
            kept.state.logBytes == active.map({ UInt64($0.log.appended) }),
            kept.state == keptState
        else { return false }
        catalog.resume(kept.roster(incarnation: storage.randomUInt64()))
        return true
    }

    /// nil if nobody has asked for a mark yet.
    fileprivate func rosterToKeep(_ exchanges: [SettledExchange]) -> KeptRoster? {
        guard catalog.roster.hasBegun, let state = keptState else { return nil }
        // Whatever has changed is before it.
        _ = catalog.mark { storage.randomUInt64() }
        return KeptRoster(catalog.roster, exchanges, of: state)
    }
}

extension Engine {
    /// When the store was read, before anybody has it. What is no use is left as it is.
    func resumeRoster() {
        let path = filePath(KeptRoster.fileName)
        let kept = try? Self.rosterFile.read(path, identity, storage) {
            (content, _) throws(Malformed) in
            try KeptRoster(decoding: content)
        }
        guard let kept, withLock({ held in held.resume(kept) }) else { return }
        settledExchanges.withLock { $0 = kept.exchanges }
    }

    /// When the store was closed, with the last of its files in place. Without it everything is
    /// looked at once more, so it is not waited for until it is durable, and no failure is told.
    func keepRoster() {
        let exchanges = settledExchanges.withLock { $0 }
        guard let kept = withLock({ held in held.rosterToKeep(exchanges) }) else { return }
        let bytes = Self.rosterFile.bytes(
            kept.encoded, identity, at: storage.wallClockMilliseconds())
        try? replaceRoster(by: bytes)
    }

    private func replaceRoster(by bytes: [UInt8]) throws(StoreError) {
        let temporary = filePath(KeptRoster.temporaryName)
        let file = try storage.openFile(temporary, .create)
        try bytes.withBytes { (view) throws(StoreError) in
            try unsafe file.write(view.buffer, at: 0)
        }
        try ownership?.check()
        try storage.rename(temporary, to: filePath(KeptRoster.fileName))
    }
}
