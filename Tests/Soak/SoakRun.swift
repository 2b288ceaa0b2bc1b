import Glibc
import Synchronization
import TestSupport
import Tidemark

/// Rounds of threads in this process and of children that are killed, on one store.
final class SoakRun {
    private let directory: String
    private let end: Double
    private let started = SoakRun.now()
    private let child: SoakChild
    private let seed: Seed
    private var random: SeededGenerator
    private let writers: [SoakWriter]
    private let backup: SoakBackup
    private let counts = SoakCounts()
    private var killed: [[UInt8]: [UInt8]] = [:]
    private var killedNumber: UInt64 = 0

    init(_ directory: String, seconds: Double, _ seed: Seed) {
        self.directory = directory
        self.seed = seed
        end = started + seconds
        child = SoakChild(seed)
        backup = SoakBackup(directory)
        random = SeededGenerator(seed)
        writers = (0..<3).map { SoakWriter($0, SeededGenerator(Seed(seed.rawValue &+ UInt64($0)))) }
    }

    static func now() -> Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func options(historyVersions: Int) -> StoreOptions {
        StoreOptions(
            durability: .process, segmentBytes: 2 << 20, blockCacheBytes: 1 << 20,
            historyVersions: historyVersions)
    }

    /// True if there was no difference.
    func run() throws -> Bool {
        say("soak: seed \(seed), \(directory)")
        var nextLine = started + 60
        while Self.now() < end, counts.differences == 0 {
            try threadsRound(seconds: min(5, max(1, end - Self.now())))
            for _ in 0..<4 where counts.differences == 0 { try killRound() }
            if Self.now() > nextLine {
                say(line)
                nextLine += 60
            }
        }
        say(line)
        return counts.differences == 0
    }

    private var line: String {
        """
        soak: \(Int((Self.now() - started) / 60)) minutes, \(counts.operations) operations, \
        \(counts.reopenings) reopenings, \(counts.kills) kills, \
        \(counts.differences) differences, seed \(seed)
        """
    }

    private func opened() throws -> Store {
        counts.note(reopening: true)
        return try Store.open(
            at: directory, options: Self.options(historyVersions: random.oneIn(2) ? 0 : 2))
    }

    // MARK: - Threads

    private func threadsRound(seconds: Double) throws {
        let store = try opened()
        let stop = Self.now() + seconds
        let counts = counts
        let readerSeed = random.split()
        var bodies: [@Sendable () throws -> Void] = writers.map { writer in
            { try writer.write(to: store, until: stop, counts) }
        }
        bodies.append { try SoakReader(store, readerSeed, counts).read(until: stop) }
        let compactionSeed = random.split()
        bodies.append { try Self.compact(store, compactionSeed, until: stop, counts) }
        let banks = (0..<2).map { _ in SoakBank(store, random.split(), counts) }
        for bank in banks { bodies.append { try bank.transfer(until: stop) } }
        let sessions = SoakSessions(store, random.split(), counts)
        bodies.append { try sessions.run(until: stop) }
        let backup = backup
        bodies.append { try backup.repeatedly(store, until: stop, counts) }
        do {
            try runOnThreads(bodies)
            for writer in writers { try writer.checkAll(store) }
            try SoakBank.check(store)
            try backup.check(store, writers, &random)
            let damages = try store.verify().damages
            try require(damages.isEmpty, "verification finds \(damages)")
            try store.close()
            let again = try opened()
            for writer in writers { try writer.checkAll(again) }
            try checkKilled(again)
            try SoakBank.check(again)
            try again.close()
        } catch {
            counts.difference("\(error)")
        }
    }

    /// Everything, or some range of some dataset, over and over.
    private static func compact(
        _ store: Store, _ seed: SeededGenerator, until stop: Double, _ counts: SoakCounts
    ) throws {
        var random = seed
        while now() < stop {
            let datasets = try store.datasets()
            if random.oneIn(2) || datasets.isEmpty {
                try store.compact()
            } else {
                let dataset = random.element(of: datasets)
                try dataset.compact(range(&random))
            }
            _ = try store.statistics()
            counts.note(operations: 2)
        }
    }

    /// Of the keys that writers use; now and then of all, and now and then of none.
    private static func range(_ random: inout SeededGenerator) -> KeyRange {
        switch random.below(4) {
        case 0: return .all
        case 1: return .prefix(Array("key \(random.below(40))".utf8))
        default:
            let lower = Array("key \(random.below(4_000))".utf8)
            return KeyRange(from: lower, upTo: Array("key \(random.below(4_000))".utf8))
        }
    }

    // MARK: - Kills

    private func killRound() throws {
        let process = try ChildProcess(
            "Soak", ["child", directory, "\(seed)", "\(killedNumber + 1)"])
        var output: [UInt8] = []
        let stop = Self.now() + Double(random.below(700)) / 1_000
        while Self.now() < stop {
            guard let more = try process.read(waitingMilliseconds: 5) else { break }
            output += more
        }
        process.kill()
        output += try process.readToEnd()
        let wasKilled = process.wait()
        counts.note(kill: true)
        do {
            try require(wasKilled, "the writer ended by itself")
            for start in stride(from: 0, to: output.count - output.count % 8, by: 8) {
                let number = output[start..<(start + 8)].reversed().reduce(UInt64(0)) {
                    $0 << 8 | UInt64($1)
                }
                try require(number == killedNumber + 1, "\(number) follows \(killedNumber)")
                advance()
            }
            let store = try opened()
            try checkKilled(store)
            for writer in writers { try writer.checkAll(store) }
            try SoakBank.check(store)
            try store.close()
        } catch {
            counts.difference("after a kill: \(error)")
        }
    }

    private func advance() {
        killedNumber += 1
        for write in child.writes(of: killedNumber) { killed[write.key] = write.value }
        counts.note(operations: 1)
    }

    /// Everything acknowledged is there, and perhaps the one operation under way, whole.
    private func checkKilled(_ store: Store) throws {
        guard let dataset = try store.existingDataset(SoakChild.datasetName) else {
            return try require(killed.isEmpty, "the killed writer's dataset is gone")
        }
        var found: [[UInt8]: [UInt8]] = [:]
        for record in try dataset.records().collect() { found[record.key] = record.value }
        if found == killed { return }
        advance()
        try require(
            found == killed,
            "after operation \(killedNumber) of the killed writer: \(found.count) records, "
                + "\(killed.count) expected")
    }
}

/// What was done so far.
final class SoakCounts: Sendable {
    private struct Values {
        var operations = 0
        var reopenings = 0
        var kills = 0
        var differences = 0
    }

    private let values = Mutex(Values())

    var operations: Int { values.withLock { $0.operations } }
    var reopenings: Int { values.withLock { $0.reopenings } }
    var kills: Int { values.withLock { $0.kills } }
    var differences: Int { values.withLock { $0.differences } }

    func note(operations: Int = 0, reopening: Bool = false, kill: Bool = false) {
        values.withLock { values in
            values.operations += operations
            values.reopenings += reopening ? 1 : 0
            values.kills += kill ? 1 : 0
        }
    }

    func difference(_ text: String) {
        values.withLock { $0.differences += 1 }
        say("soak: DIFFERENCE: \(text)")
    }
}

/// Straight to the descriptor, so that it is seen at once in a file, too.
func say(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = unsafe line.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}
