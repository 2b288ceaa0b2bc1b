import Foundation
import Specification
import Synchronization
import TestSupport
import Tidemark

@testable import TidemarkSync

/// A disk whose clock stands where a schedule says, and whose random numbers are low or high, so
/// that the order of replica ids is the one of the specification.
struct SpecifiedStorage: WrappedStorage {
    final class Setting: Sendable {
        let milliseconds: Mutex<UInt64>
        let drawsHigh = Mutex(false)

        init(_ milliseconds: UInt64) { self.milliseconds = Mutex(milliseconds) }

        func stand(at milliseconds: UInt64) { self.milliseconds.withLock { $0 = milliseconds } }
    }

    let setting: Setting
    let base = SystemStorage()

    func wallClockMilliseconds() -> UInt64 { setting.milliseconds.withLock { $0 } }

    func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }

    func randomUInt64() -> UInt64 {
        let isHigh = setting.drawsHigh.withLock { $0 }
        return base.randomUInt64() >> 1 | (isHigh ? 1 << 63 : 0)
    }
}

/// Three stores that go through a schedule beside a world of the specification.
final class SpecifiedStores {
    struct Difference: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    private final class Side {
        let path: String
        let setting: SpecifiedStorage.Setting
        let options: StoreOptions
        var store: Store

        init(_ path: String, _ bugs: PlantedBugs) throws {
            self.path = path
            setting = SpecifiedStorage.Setting(SpecifiedValues.any.start)
            var options = StoreOptions(
                durability: .memory, segmentBytes: 1 << 20, blockCacheBytes: 1 << 20,
                tombstoneAge: .seconds(3_600), compactsAutomatically: false)
            options.plantedBugs = bugs
            self.options = options
            store = try Store.open(
                at: path, options: options, storage: SpecifiedStorage(setting: setting))
            _ = try store.dataset("notes")
        }

        var dataset: Dataset { get throws { try store.dataset("notes") } }

        func reopen(after change: () throws -> Void) throws {
            try store.close()
            try change()
            store = try Store.open(
                at: path, options: options, storage: SpecifiedStorage(setting: setting))
        }
    }

    private let directory = TemporaryDirectory()
    private var sides: [Side] = []
    private var values: SpecifiedValues
    private let settings: SpecSettings
    private(set) var world = SpecWorld()
    private var backedUp: Int?
    /// Whether the order of two versions of one millisecond is another one here. After a disk went
    /// back an exchange makes new writes, which a store stamps after what it has noted in the same
    /// millisecond; the specification counts no notes.
    private(set) var hasParted = false

    init(_ settings: SpecSettings, bugs: PlantedBugs = []) throws {
        self.settings = settings
        try FileManager.default.createDirectory(
            atPath: directory.path, withIntermediateDirectories: true)
        let path = directory.path
        sides = try (0..<3).map { try Side("\(path)/\($0)", bugs) }
        sides.sort { $0.store.replicaID < $1.store.replicaID }
        values = SpecifiedValues.any
        values.ids = sides.map(\.store.replicaID) + [ReplicaID(high: .max, low: .max)]
    }

    deinit { for side in sides { try? side.store.close() } }

    // MARK: - Steps

    /// Takes the step here and there.
    ///
    /// - Returns: false if it changes nothing in the specification; then it was not taken.
    /// - Throws: a ``Difference``.
    func take(_ step: SpecStep) async throws -> Bool {
        guard !hasParted, let (next, _) = world.after(step, settings) else { return false }
        let before = world
        for (side, replica) in zip(sides, before.replicas) {
            side.setting.stand(at: values.start + UInt64(replica.clock.tick))
        }
        world = next
        switch step {
        case .put(let at, let key): try write(at, key, isDeletion: false)
        case .delete(let at, let key): try write(at, key, isDeletion: true)
        case .exchange(let from, let to, let cut):
            let exchange = SpecExchange(
                before.replicas[from], before.replicas[to], settings, cut: cut)
            let transport = FaultyTransport(
                responder(to), cut.map { $0.losesAnswer ? .losesAnswer : .losesRequest },
                after: cut.map { $0.message - 1 } ?? .max)
            try await self.exchange(from, exchange, transport)
        case .crossedExchange(let from, let to, let message, let key):
            try await crossedExchange(from, to, message: message, key: key)
        case .forget(let at):
            // An hour is the age of deletions. Nothing is written meanwhile.
            let clock = before.replicas[at].clock
            if settings.forgetsByAge {
                sides[at].setting.stand(at: values.start + 7_200_000)
            }
            try sides[at].store.compact()
            sides[at].setting.stand(at: values.start + UInt64(clock.tick))
        case .backUp(let at):
            try sides[at].reopen {
                try directory.copy(name(of: at), to: "backup")
            }
            backedUp = at
        case .restore, .losePower:
            guard let at = backedUp else { throw Difference("there is no backup") }
            try sides[at].reopen {
                try directory.copy("backup", to: name(of: at))
            }
            sides[at].setting.drawsHigh.withLock { $0 = true }
        }
        try compare(after: step)
        // One that was asked for before goes on with the changes, and the others are made anew.
        _ = try sides[0].dataset.digest()
        return true
    }

    private func name(of side: Int) -> String {
        String(sides[side].path.dropFirst(directory.path.count + 1))
    }

    private func responder(_ side: Int) -> SyncResponder {
        SyncResponder(store: sides[side].store)
    }

    private func write(_ at: Int, _ key: Int, isDeletion: Bool) throws {
        guard let write = world.writes.last(where: { $0.name.replica == at }) else {
            throw Difference("nothing was written")
        }
        sides[at].setting.stand(at: values.start + UInt64(write.version.time.tick))
        let dataset = try sides[at].dataset
        if isDeletion {
            try dataset.delete(SpecifiedValues.key(key))
        } else {
            try dataset.put(SpecifiedValues.value(of: write.name), for: SpecifiedValues.key(key))
        }
    }

    private func exchange(
        _ from: Int, _ specified: SpecExchange, _ transport: any SyncTransport
    ) async throws {
        var exchange = specified
        let outcome = exchange.run()
        do {
            let result = try await sides[from].dataset.synchronize(
                with: transport, options: SyncOptions(pageRecordsMax: settings.pageRecordsMax))
            guard outcome == .complete else {
                throw Difference("the exchange comes to an end, and should be \(outcome)")
            }
            guard result.pagesReceived == exchange.pagesReceived,
                result.pagesSent == exchange.pagesSent
            else {
                throw Difference(
                    "\(result.pagesReceived) pages received and \(result.pagesSent) sent, for "
                        + "\(exchange.pagesReceived) and \(exchange.pagesSent)")
            }
        } catch let error as SyncError {
            let expected: SyncError.Code? =
                switch outcome {
                case .complete: nil
                case .cut: .unreachable
                case .contended: .contended
                }
            guard error.code == expected else {
                throw Difference("\(error), and should be \(outcome)")
            }
        }
    }

    private func crossedExchange(_ from: Int, _ to: Int, message: Int, key: Int) async throws {
        let write = world.writes.last { $0.name.replica == to }
        guard let write else { throw Difference("nothing was written") }
        let dataset = try sides[to].dataset
        let setting = sides[to].setting
        let time = values.start + UInt64(write.version.time.tick)
        let transport = InterposedTransport(responder(to)) { point in
            guard point.number == message, point.moment == .beforeRequest else { return }
            setting.stand(at: time)
            try dataset.put(SpecifiedValues.value(of: write.name), for: SpecifiedValues.key(key))
        }
        try await sides[from].dataset.synchronize(
            with: transport, options: SyncOptions(pageRecordsMax: settings.pageRecordsMax))
    }

    // MARK: - Comparison

    /// Exchanges of all with all until nothing moves in the specification. Where it says that all
    /// hold the same, their digests say so.
    func comeToRest() async throws {
        for _ in 0..<8 {
            var moves = false
            for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
                if try await take(.exchange(from: from, to: to, cut: nil)) { moves = true }
            }
            guard moves else {
                if !world.isUnnoticed, !hasParted { try compareDigests() }
                return
            }
        }
        throw Difference("no rest")
    }

    private func compare(after step: SpecStep) throws {
        // Others may have heard of the new id in the same step.
        for (side, replica) in zip(sides, world.replicas) where replica.hasRenewedID {
            values.ids[SpecReplica.renewedID] = side.store.replicaID
        }
        for (side, replica) in zip(sides, world.replicas) {
            let name = ["a", "b", "c"][replica.index]
            func check<Value: Equatable>(
                _ what: String, _ found: Value, _ specified: Value
            ) throws {
                guard found != specified else { return }
                throw Difference(
                    "\(step): \(what) of \(name) is \(found), and should be \(specified)")
            }
            try check("id", side.store.replicaID, values.ids[replica.id])
            let dataset = try side.dataset
            let knowledge = try dataset.knowledge()
            try check("vector", knowledge.vector, values.vector(replica.vector))
            try check(
                "what was forgotten", knowledge.forgotten.vector,
                values.vector(replica.forgotten.vector))
            try check("life", knowledge.lifecycle.replica, values.ids[replica.life])
            try check(
                "what is disputed", try BatonBook(dataset).disputed,
                replica.disputed.map { values.ids[$0] })
            for key in 0..<2 {
                let stored = try dataset.storedRecord(for: SpecifiedValues.key(key))
                let specified = replica.records[key]
                let tick = specified.map { values.time($0.version.time).milliseconds }
                if world.hasRestored,
                    stored?.version.dot != specified.map({ values.dot($0.version.dot) }),
                    stored?.version.time.milliseconds == tick
                {
                    hasParted = true
                    return
                }
                try check("value of k\(key)", stored?.value, specified.flatMap(values.value))
                try check(
                    "dot of k\(key)", stored?.version.dot,
                    specified.map { values.dot($0.version.dot) })
                try check(
                    "vector of k\(key)", stored?.version.vector,
                    specified.map { values.vector($0.version.vector) })
                // Within a millisecond a store counts what is stamped beside the records, too.
                try check(
                    "time of k\(key)", stored?.version.time.milliseconds,
                    specified.map { values.time($0.version.time).milliseconds })
                try check(
                    "outliving of k\(key)", stored?.version.time.isOutliving,
                    specified?.version.time.isOutliving)
            }
        }
    }

    private func compareDigests() throws {
        let digests = try sides.map { try $0.dataset.digest() }
        guard Set(digests).count == 1 else { throw Difference("digests differ: \(digests)") }
    }
}
