import Synchronization

/// Datasets into which replicas push at this moment.
///
/// That they will have changed is noted on disk before they push, so that a crash loses nothing of
/// it. Until the push is over the note must not be taken for empty.
final class OpenPushes: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func open(_ datasets: [String]) {
        counts.withLock { counts in
            for dataset in datasets { counts[dataset, default: 0] += 1 }
        }
    }

    func close(_ datasets: [String]) {
        counts.withLock { counts in
            for dataset in datasets {
                let count = (counts[dataset] ?? 0) - 1
                counts[dataset] = count > 0 ? count : nil
            }
        }
    }

    func isOpen(_ dataset: String) -> Bool {
        counts.withLock { $0[dataset] != nil }
    }
}

/// How many bytes wait for the stream of each pool. An estimate that is never too low: attempts
/// that failed count too, so who finds it too high measures anew.
final class OutboxMeter: Sendable {
    private struct Count {
        var bytes = 0
        var isMeasured = false
    }

    private let counts = Mutex<[PoolID: Count]>([:])

    /// Whether what was there before the hub started counts.
    func isMeasured(_ pool: PoolID) -> Bool {
        counts.withLock { $0[pool]?.isMeasured ?? false }
    }

    func bytes(of pool: PoolID) -> Int {
        counts.withLock { $0[pool]?.bytes ?? 0 }
    }

    func set(_ bytes: Int, of pool: PoolID) {
        counts.withLock { $0[pool] = Count(bytes: bytes, isMeasured: true) }
    }

    func add(_ bytes: Int, of pool: PoolID) {
        counts.withLock { $0[pool, default: Count()].bytes += bytes }
    }

    func subtract(_ bytes: Int, of pool: PoolID) {
        counts.withLock { counts in
            counts[pool, default: Count()].bytes = max(0, (counts[pool]?.bytes ?? 0) - bytes)
        }
    }
}
