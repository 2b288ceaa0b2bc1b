/// What a verification found.
public struct VerificationReport: Hashable, Sendable {
    public internal(set) var filesChecked = 0
    public internal(set) var blocksChecked = 0
    public internal(set) var bytesChecked: UInt64 = 0
    /// Every damage found, each with file and offset; empty if all is well. Of one file no more
    /// than the first few, since one damage can hide the beginning of what follows.
    public internal(set) var damages: [StoreError] = []
}

/// How far a verification has come.
public struct VerificationProgress: Hashable, Sendable {
    public let bytesChecked: UInt64
    public let bytesTotal: UInt64
}

extension Store {
    /// Reads and checks every byte that counts of every file of the store, as of now. Damage is
    /// reported, not thrown.
    ///
    /// - Parameter progress: called after each block, on the calling thread.
    /// - Throws: `closed`.
    public func verify(
        progress: ((VerificationProgress) -> Void)? = nil
    ) throws(StoreError) -> VerificationReport {
        let view = try engine.moment().view
        let logBytes = engine.monitor.withLock {
            view.memtables.reduce(0) { $0 + UInt64($1.log.appended) }
        }
        let total = view.segments.reduce(logBytes) { $0 + $1.fileSize }
        var verifier = Verifier(bytesTotal: total, progress: progress)
        verifier.checkManifest(in: engine.path, storage: engine.storage)
        for segment in view.segments {
            verifier.check(segment)
        }
        let manifest = engine.monitor.withLock { engine.manifest }
        for memtable in view.memtables.reversed() {
            verifier.check(memtable.log, manifest)
        }
        return verifier.report
    }

    /// The same for a store that may be too damaged to open. Takes no lock and changes nothing; a
    /// process that writes the store meanwhile may make files come and go, so verify such a store
    /// through `open` with `isReadOnly` instead.
    ///
    /// - Throws: `notAStore`, `formatTooNew`.
    public static func verify(
        at path: String, progress: ((VerificationProgress) -> Void)? = nil
    ) throws(StoreError) -> VerificationReport {
        try Verifier.check(storeAt: path, storage: SystemStorage(), progress: progress)
    }
}
