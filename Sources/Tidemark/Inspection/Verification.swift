/// What a verification found.
public struct VerificationReport: Hashable, Sendable {
    public internal(set) var filesChecked = 0
    public internal(set) var blocksChecked = 0
    public internal(set) var bytesChecked: UInt64 = 0
    /// Every damage found, each once, with file and offset and in the order of these; empty if all
    /// is well. One damage can hide others: of a segment whose header, footer or tables cannot be
    /// read nothing else is looked at.
    public internal(set) var damages: [StoreError] = []
}

/// How far a verification has come.
public struct VerificationProgress: Hashable, Sendable {
    /// Bytes that are done with: also those that damage keeps from being checked, which the report
    /// does not count.
    public let bytesChecked: UInt64
    /// The same from the first call to the last.
    public let bytesTotal: UInt64
}

extension Store {
    /// Reads and checks every byte that counts of every file of the store, as of now. Damage is
    /// reported, not thrown.
    ///
    /// - Parameters:
    ///   - threads: that read and check at once, 1...64; nil: as many as there are processors, but
    ///     no more than four.
    ///   - progress: called now and then on the calling thread; what it says never goes back, and
    ///     at the end, whatever was found, all of the total is checked.
    /// - Throws: `closed`, `invalidArgument`; `inputOutput` if a file may not be read, or there is
    ///   no descriptor or memory for it: that is no damage, and there is no report.
    public func verify(
        threads: Int? = nil, progress: ((VerificationProgress) -> Void)? = nil
    ) throws(StoreError) -> VerificationReport {
        let threads = try Self.checked(threads)
        let start = engine.ticks
        let image = try engine.image()
        var verifier = Verifier(progress: progress)
        verifier.checkManifest(in: engine.path, storage: engine.storage)
        try verifier.check(
            image.view.segments, image.logs.map { ($0.log, UInt64($0.byteCount)) },
            image.manifest, threads: threads)
        for damage in verifier.report.damages { engine.events.tellDamage(damage) }
        engine.events.tell(.verificationEnded(engine.duration(since: start), verifier.report))
        return verifier.report
    }

    /// The same for a store that may be too damaged to open. Takes no lock and changes nothing; a
    /// process that writes the store meanwhile may make files come and go, so verify such a store
    /// through `open` with `isReadOnly` instead.
    ///
    /// - Parameters:
    ///   - observer: is told at the end, on the calling thread.
    ///   - progress: not called if the manifest cannot be read, which says what there is to check.
    /// - Throws: `notAStore`, `formatTooNew`, `invalidArgument`; `inputOutput` if a file may not be
    ///   read, or there is no descriptor or memory for it: that is no damage.
    public static func verify(
        at path: String, threads: Int? = nil, observer: (any StoreObserver)? = nil,
        progress: ((VerificationProgress) -> Void)? = nil
    ) throws(StoreError) -> VerificationReport {
        let storage = SystemStorage()
        let start = storage.monotonicNanoseconds()
        let report = try Verifier.check(
            storeAt: path, storage: storage, threads: try checked(threads), progress: progress)
        observer?.observe(.verificationEnded(storage.duration(since: start), report), of: path)
        return report
    }

    private static func checked(_ threads: Int?) throws(StoreError) -> Int {
        let threads = threads ?? Verifier.defaultThreads
        guard Limits.verificationThreads.contains(threads) else {
            throw StoreError(
                .invalidArgument,
                "\(threads) threads; allowed are \(Limits.verificationThreads)")
        }
        return threads
    }
}
