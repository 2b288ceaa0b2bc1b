import CrashWriter
import TestSupport
import Testing
import Tidemark

/// A process that writes is killed at random moments, and what it had acknowledged is there.
///
///     writer:  open ... write 1, say 1 | write 2, say 2 | write 3 ... <- SIGKILL
///     test:                                                 opens: 1 and 2 are there whole,
///                                                           3 is there whole or not at all
@Suite("Killed writers")
struct KillTests {
    static let killCount = 200

    @Test(
        "Every acknowledged write is there, whole batches, nothing else",
        arguments: [Durability.process, .disk])
    func kill(durability: Durability) throws {
        withSeed(for: "kill(\(durability.rawValue))") { seed in
            var random = SeededGenerator(seed)
            var run = KillRun(durability: durability, seed: random.next())
            var hasWritten = false
            for number in 1...Self.killCount {
                if random.oneIn(25) { run = KillRun(durability: durability, seed: random.next()) }
                do {
                    try run.killOnce(at: .drawn(&random))
                } catch {
                    throw Mismatch("kill \(number), after write \(run.lastNumber): \(error)")
                }
                hasWritten = hasWritten || run.lastNumber > 0
            }
            // The last run may have begun with the last kill, before the writer came to write.
            try require(hasWritten, "the writer never wrote")
        }
    }
}

/// When a writer is killed.
private enum Moment {
    case afterAcknowledgements(Int)
    case afterMilliseconds(Int32)

    static func drawn(_ random: inout SeededGenerator) -> Moment {
        switch random.below(10) {
        case 0: .afterMilliseconds(Int32(random.below(15)))
        case 1...3: .afterMilliseconds(Int32(random.below(40)))
        case 4: .afterAcknowledgements(random.below(5))
        default: .afterAcknowledgements(random.below(300))
        }
    }
}

/// One store, written by one killed process after another.
private struct KillRun {
    private let directory = try? TemporaryDirectory()
    private let durability: Durability
    private let stream: WriteStream
    /// The state after `lastNumber` writes, which is what the store held when last looked at.
    private var state: [String: [[UInt8]: [UInt8]]] = [:]
    private(set) var lastNumber: UInt64 = 0

    init(durability: Durability, seed: UInt64) {
        self.durability = durability
        stream = WriteStream(seed: seed)
    }

    mutating func killOnce(at moment: Moment) throws {
        guard let path = directory?["store"] else { throw Mismatch("no directory") }
        let process = try ChildProcess(
            "CrashWriter",
            [path, durability.rawValue, String(stream.seed), String(lastNumber + 1)])
        var output: [UInt8] = []
        switch moment {
        case .afterAcknowledgements(let count):
            while output.count < count * 8 {
                guard let more = try process.read(waitingMilliseconds: 1_000) else { break }
                output += more
            }
        case .afterMilliseconds(let milliseconds):
            for _ in 0..<milliseconds {
                guard let more = try process.read(waitingMilliseconds: 1) else { break }
                output += more
            }
        }
        process.kill()
        output += try process.readToEnd()
        try require(process.wait(), "the writer ended by itself")

        let acknowledged = try lastAcknowledged(in: output)
        while lastNumber < acknowledged { advance() }
        try checkStore(at: path)
    }

    /// The acknowledged numbers follow each other; the last of them, or the one before all.
    private func lastAcknowledged(in output: [UInt8]) throws -> UInt64 {
        var last = lastNumber
        for start in stride(from: 0, to: output.count - output.count % 8, by: 8) {
            let number = output[start..<(start + 8)].reversed().reduce(UInt64(0)) {
                $0 << 8 | UInt64($1)
            }
            try require(number == last + 1, "the writer acknowledged \(number) after \(last)")
            last = number
        }
        return last
    }

    private mutating func advance() {
        lastNumber += 1
        for change in stream.changes(of: lastNumber) {
            state[change.dataset, default: [:]][change.key] = change.value
        }
    }

    /// The store holds the acknowledged writes, and perhaps the one that was under way.
    private mutating func checkStore(at path: String) throws {
        let store = try Store.open(
            at: path, options: StoreOptions(durability: durability, segmentBytes: 1 << 20))
        var found: [String: [[UInt8]: [UInt8]]] = [:]
        for dataset in try store.datasets() {
            for record in try dataset.records().collect() {
                found[dataset.name, default: [:]][record.key] = record.value
            }
        }
        let acknowledged = lastNumber
        if !holds(found) {
            advance()
            try require(
                holds(found),
                """
                the store holds neither the state after write \(acknowledged) nor the one after \
                the next: \(difference(found))
                """)
        }
        if acknowledged % 7 == 0 {
            let damages = try store.verify().damages
            try require(damages.isEmpty, "damages: \(damages)")
        }
        try store.close()
    }

    private func holds(_ found: [String: [[UInt8]: [UInt8]]]) -> Bool {
        WriteStream.datasetNames.allSatisfy { (found[$0] ?? [:]) == (state[$0] ?? [:]) }
    }

    private func difference(_ found: [String: [[UInt8]: [UInt8]]]) -> String {
        var differences: [String] = []
        for name in WriteStream.datasetNames {
            let (have, want) = (found[name] ?? [:], state[name] ?? [:])
            for key in Set(have.keys).union(want.keys) where have[key] != want[key] {
                differences.append(
                    "\(name)/\(Bytes.summary(key)) of write \(number(have[key])), "
                        + "not of \(number(want[key]))"
                )
            }
        }
        return differences.sorted().prefix(5).joined(separator: "; ")
    }

    /// Each value begins with the number of its write.
    private func number(_ value: [UInt8]?) -> String {
        guard let value, value.count >= 8 else { return "none" }
        return String(value[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
