import Glibc
import TestSupport
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// The child that writes and synchronises.
///
/// One thread writes and tells what was acknowledged; tasks synchronise meanwhile. A store without
/// a write of its own, such as one that begins anew, is first synchronised as a whole: writes of
/// the replica's earlier store are then ancestors of what follows, and no clock is asked.
final class TortureReplica: Sendable {
    /// How an exchange may end while there is trouble; nothing else may come of it.
    private static let troubles: Set<SyncError.Code> = [
        .unreachable, .unauthorized, .protocolMismatch, .badMessage, .tooLarge, .peerFailed,
        .contended, .peerChanged, .timedOut, .cancelled,
    ]
    /// What passes by itself when there is none.
    private static let hesitations: Set<SyncError.Code> = [.unreachable, .contended, .peerChanged]
    private static let restAttemptsMax = 200

    private let order: ChildOrder
    private let store: Store
    private let datasets: [Dataset]
    private let stream: TortureStream
    /// The last operation that is in the store.
    private let last: UInt64
    private let isNew: Bool

    /// Opens the store, and finds out whether the operation is in it that was under way when the
    /// process before was killed.
    ///
    /// - Throws: also if only a part of an operation is there, or an acknowledged one is not.
    init(_ order: ChildOrder) throws {
        let store = try Store.open(at: order.directory, options: order.options)
        tell(.opened(store.replicaID))
        let datasets = try TortureKey.datasetNames.map { try store.dataset($0) }
        let stream = TortureStream(seed: order.seed, replica: order.replica)
        // A dot for each write, and nothing else makes any.
        var writeCount: UInt64 = 0
        for dataset in datasets { writeCount += try dataset.vector[store.replicaID] }
        var last = order.number
        if writeCount != order.writeCount {
            let writes = stream.writes(of: order.number + 1)
            try require(
                writeCount == order.writeCount + UInt64(writes.count),
                "\(writeCount) writes after operation \(order.number), whose end was "
                    + "\(order.writeCount), and before one of \(writes.count)")
            last += 1
            tell(.wrote(last, try Self.standings(of: writes, in: datasets)))
        }
        self.order = order
        self.store = store
        self.datasets = datasets
        self.stream = stream
        self.last = last
        isNew = writeCount == 0
    }

    // MARK: - Writing

    private func startWriting(_ random: SeededGenerator) {
        ThreadGroup.startDetached {
            do {
                try self.write(random)
            } catch {
                tell(.fault("a write failed: \(error)"))
                _exit(1)
            }
        }
    }

    private func write(_ seed: SeededGenerator) throws {
        var random = seed
        var number = last
        while true {
            for _ in 0...random.below(30) {
                number += 1
                try perform(number)
            }
            usleep(UInt32(random.below(30_000)))
        }
    }

    private func perform(_ number: UInt64) throws {
        let writes = stream.writes(of: number)
        let durability: Durability = number % 64 == 0 ? .disk : .process
        if writes.count == 1, let write = writes.first {
            let dataset = datasets[write.key.dataset]
            if let value = write.value {
                try dataset.put(value, for: write.key.bytes, durability: durability)
            } else {
                try dataset.delete(write.key.bytes, durability: durability)
            }
        } else {
            var batch = WriteBatch()
            for write in writes {
                let dataset = datasets[write.key.dataset]
                if let value = write.value {
                    batch.put(value, for: write.key.bytes, in: dataset)
                } else {
                    batch.delete(write.key.bytes, in: dataset)
                }
            }
            try store.write(batch, durability: durability)
        }
        tell(.wrote(number, try Self.standings(of: writes, in: datasets)))
    }

    private static func standings(
        of writes: [TortureStream.Write], in datasets: [Dataset]
    ) throws -> [Standing] {
        var seen: Set<TortureKey> = []
        var standings: [Standing] = []
        for write in writes where seen.insert(write.key).inserted {
            let record = try datasets[write.key.dataset].record(
                for: write.key.bytes, includingDeleted: true)
            standings.append(
                Standing(
                    key: write.key, stamp: record.map { Stamp($0.version) },
                    isDeleted: record?.value == nil))
        }
        return standings
    }

    // MARK: - Synchronising

    /// Until it is killed.
    func storm() async throws {
        var random = order.random
        let writing = random.split()
        let transport = HTTPTransport(
            url: order.url, token: TortureHub.token, timeout: .seconds(2))
        var isWriting = !isNew
        if isWriting { startWriting(writing) }
        while true {
            let moved = try await exchange(
                through: transport, Self.options(&random), tolerating: Self.troubles)
            if !isWriting, moved != nil {
                isWriting = true
                startWriting(writing)
            }
            try await Task.sleep(for: .milliseconds(random.below(40)))
        }
    }

    /// Until nothing is left to be exchanged.
    func rest() async throws {
        let transport = HTTPTransport(
            url: order.url, token: TortureHub.token, timeout: .seconds(60))
        var movedInAll = 0
        for _ in 0..<Self.restAttemptsMax {
            let moved = try await exchange(
                through: transport, SyncOptions(deadline: .seconds(300)),
                tolerating: Self.hesitations)
            if let moved { movedInAll += moved }
            guard moved == 0 else {
                try await Task.sleep(for: .milliseconds(20))
                continue
            }
            await transport.shutdown()
            try store.close()
            return tell(.rested(moved: movedInAll))
        }
        throw Mismatch("no rest after \(Self.restAttemptsMax) exchanges that nothing disturbs")
    }

    /// - Returns: how many records it moved; nil if it left something to be exchanged.
    private func exchange(
        through transport: HTTPTransport, _ options: SyncOptions,
        tolerating tolerated: Set<SyncError.Code>
    ) async throws -> Int? {
        let report = await store.synchronizeEach(with: transport, options: options)
        var errors = report.datasets.compactMap(\.error)
        if let error = report.error { errors.append(error) }
        for error in errors where !tolerated.contains(error.code) {
            throw Mismatch("an exchange ended with \(error.code): \(error)")
        }
        if let error = errors.first {
            tell(.failed("\(error.code)"))
            return nil
        }
        let results = report.datasets.compactMap(\.result)
        let pulled = results.reduce(0) { $0 + $1.pulled }
        let pushed = results.reduce(0) { $0 + $1.pushed }
        tell(.exchanged(pulled: pulled, pushed: pushed))
        return report.isComplete ? pulled + pushed : nil
    }

    /// Pages are small, so that there is something to be cut between them.
    private static func options(_ random: inout SeededGenerator) -> SyncOptions {
        SyncOptions(
            attemptsMax: 1 + random.below(5), pageBytesMax: random.oneIn(3) ? 4_000 : 1 << 20,
            pageRecordsMax: 5 + random.below(400), parallelDatasetsMax: 1 + random.below(2),
            recordsPerRunMax: random.oneIn(6) ? 100 : nil, deadline: .seconds(4))
    }
}
