internal import Synchronization

/// The changes of one dataset at one moment, given out piece by piece. Between the pieces it holds
/// the segments of its moment only as long as they are the present ones: when others take their
/// place it lets go, and whoever pulls begins another pass where this one was. So a consumer that
/// sleeps holds nothing that the store has given up.
final class ChangePass: ViewHolder, @unchecked Sendable {
    // Unchecked: `steps` and `failure` are under `lock`.

    enum Piece {
        /// - through: everything up to here has been looked at.
        case records([Record], through: SyncCount)
        case ended
        case letGo
    }

    /// As many records and bytes as are copied at once: few enough to be forgotten, and enough
    /// that taking the lock does not count. A single record may exceed the bytes.
    static let recordsMax = 64
    static let bytesMax = 256 << 10
    /// Changes of other keys passed over at once: some milliseconds.
    static let skipsMax = 8_192

    /// The sync count of the dataset at the moment.
    let end: SyncCount
    private let dirtiness: Dirtiness
    private let lock = Monitor()
    private let isUnwanted = Atomic<Bool>(false)
    private var steps: ChangeSteps?
    /// What was met behind the last piece.
    private var failure: StoreError?

    init(_ steps: ChangeSteps, _ dirtiness: Dirtiness, end: SyncCount) {
        self.steps = steps
        self.dirtiness = dirtiness
        self.end = end
    }

    /// - Throws: `corruption`, `inputOutput`, once all that comes before was given out, and then
    ///   again and again.
    func next() throws(StoreError) -> Piece {
        defer { dropIfUnwanted() }
        return try lock.withLock { () throws(StoreError) -> Piece in
            guard steps != nil else { return .letGo }
            if let failure { throw failure }
            var records: [Record] = []
            do throws(StoreError) {
                guard try collect(&records) else { return .ended }
            } catch {
                failure = error
                guard let last = records.last else { throw error }
                return .records(records, through: last.syncCount)
            }
            return .records(records, through: SyncCount(rawValue: steps!.through))
        }
    }

    /// Adds the records of a piece. False if there are none, and none come. Under `lock`.
    private func collect(_ records: inout [Record]) throws(StoreError) -> Bool {
        var bytes = 0
        while records.count < Self.recordsMax, bytes < Self.bytesMax {
            let (dirtiness, now) = (dirtiness, steps!.moment.now)
            let (record, isPaused) = try steps!.nextOrPause(skipsMax: Self.skipsMax) {
                (entry, tables) throws(StoreError) in
                try Record(entry, tables, dirtiness, now: now)
            }
            guard let record else { return isPaused || !records.isEmpty }
            records.append(record)
            bytes += record.key.count + (record.value?.count ?? 0)
        }
        return true
    }

    /// Waits for nobody: if a piece is being read, the reader sees to it.
    func letGo() {
        isUnwanted.store(true, ordering: .sequentiallyConsistent)
        dropIfUnwanted()
    }

    /// Whoever holds the lock looks again after it has given it up, so one of both finds it.
    private func dropIfUnwanted() {
        guard isUnwanted.load(ordering: .sequentiallyConsistent), lock.tryLock() else { return }
        let dropped = steps
        steps = nil
        lock.unlock()
        withExtendedLifetime(dropped) {}
    }
}
