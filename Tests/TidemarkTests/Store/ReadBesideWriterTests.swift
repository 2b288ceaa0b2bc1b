import CrashWriter
import TestSupport
import Testing
import Tidemark

/// Read-only openings beside another process that writes, seals, merges and uses files again.
///
///     writer:  write 7, say 7 | write 8, say 8 | seal | write 9, say 9 | the sealed log anew ...
///     test:               reads "7"   open ------------ done   reads "8", "9"
///
/// What is then seen is one of the states from 7 on up to that after 10, the one that may have been
/// written and not yet said; and it stays while the writer goes on.
@Suite("Readers beside a writer", .serialized)
struct ReadBesideWriterTests {
    /// At least.
    private static let openingCount = 400
    private static let logCount = 50

    @Test("Hundreds of openings each see a whole batch, nothing older, and it stays")
    func openings() throws {
        let directory = try TemporaryDirectory()
        let path = directory["store"]
        let writer = try WriterProcess(path, ["stamps", "1"])
        try writer.waitForFirst()
        var readers: [OpenReader] = []
        let begin = ContinuousClock.now
        var number = 0
        // However slow the writer is beside the other tests: its files are to be used again.
        while try number < Self.openingCount || writer.logNumber(in: path) <= Self.logCount {
            number += 1
            try require(
                ContinuousClock.now - begin < Patience.limit,
                "the writer has hardly sealed anything")
            let acknowledged = try writer.lastAcknowledged()
            let reader = try OpenReader(path)
            try require(
                reader.number >= acknowledged,
                "opening \(number) sees batch \(reader.number) after \(acknowledged)")
            let latest = try writer.lastAcknowledged()
            try require(
                reader.number <= latest + 1,
                "opening \(number) sees batch \(reader.number) before \(latest) was written")
            readers.append(reader)
            // Some stay for long, while their files are sealed, merged, removed and used again.
            if readers.count > 4 {
                let left = readers.remove(at: number % 5)
                try left.check()
                try left.store.close()
            }
        }
        for reader in readers { try reader.check() }
        let copy = directory["backup"]
        let source = readers[0]
        try source.store.backup(to: copy)
        writer.process.kill()
        #expect(writer.process.wait())
        for reader in readers {
            try reader.check()
            try reader.store.close()
        }
        let backup = try OpenReader(copy)
        #expect(backup.number == source.number)
        #expect(try backup.store.verify().damages.isEmpty)
        try backup.store.close()
    }

    @Test("A store that is gone, or never was one, is told at once")
    func nothingThere() throws {
        let directory = try TemporaryDirectory()
        expectError(.notAStore) { try OpenReader(directory["none"]) }
        try Files.createDirectory(directory["empty"])
        expectError(.notAStore) { try OpenReader(directory["empty"]) }
    }
}

/// The child that writes batches with numbers, and what it has said so far.
private final class WriterProcess {
    let process: ChildProcess
    private var rest: [UInt8] = []
    private var last: UInt64 = 0

    init(_ path: String, _ arguments: [String]) throws {
        process = try ChildProcess("CrashWriter", [path] + arguments)
    }

    func waitForFirst() throws {
        while last == 0 {
            guard try take(waitingMilliseconds: 1_000) else {
                throw Mismatch("the writer ended by itself")
            }
        }
    }

    /// The last batch of which it has said that it was written.
    func lastAcknowledged() throws -> UInt64 {
        while try take(waitingMilliseconds: 0) {}
        return last
    }

    /// False if there was nothing to be read.
    private func take(waitingMilliseconds: Int32) throws -> Bool {
        guard let more = try process.read(waitingMilliseconds: waitingMilliseconds) else {
            throw Mismatch("the writer ended by itself, after batch \(last)")
        }
        rest += more
        let whole = rest.count - rest.count % 8
        if whole > 0 {
            last = rest[(whole - 8)..<whole].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            rest.removeFirst(whole)
        }
        return !more.isEmpty
    }

    /// The greatest number of any log.
    func logNumber(in path: String) throws -> Int {
        try Files.list(path).filter { $0.hasSuffix(".log") }
            .compactMap { Int($0.dropLast(4)) }.max() ?? 0
    }
}

/// A store opened read-only, and the number of the batch that it saw first.
private struct OpenReader {
    let store: Store
    private let dataset: Dataset
    let number: UInt64

    init(_ path: String) throws {
        var options = StoreOptions(isReadOnly: true)
        options.blockCacheBytes = 1 << 20
        store = try Store.open(at: path, options: options)
        guard let dataset = try store.existingDataset(StampStream.datasetName) else {
            throw Mismatch("the dataset is not there")
        }
        self.dataset = dataset
        number = try Self.number(in: dataset)
    }

    /// What is seen is still the same.
    func check() throws {
        let now = try Self.number(in: dataset)
        try require(now == number, "what showed batch \(number) shows \(now) later")
    }

    /// The batch whose records are there; it is whole, and so are those before it.
    private static func number(in dataset: Dataset) throws -> UInt64 {
        let first = try dataset.get(StampStream.key(stamped: 0)) ?? []
        try require(first.count > 8, "a stamped record is missing")
        let number = first[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let value = StampStream.value(of: number)
        var trail: [[UInt8]] = []
        var stampedCount = 0
        for record in try dataset.records().collect() {
            if record.value?.count == 1 {
                trail.append(record.key)
            } else {
                stampedCount += 1
                try require(
                    record.value == value, "half of batch \(number): \(Bytes.summary(record.key))")
            }
        }
        try require(
            stampedCount == StampStream.stampedCount, "\(stampedCount) stamps of batch \(number)")
        let oldest = number > StampStream.trailCount ? number - StampStream.trailCount + 1 : 1
        try require(
            trail == (oldest...number).map { StampStream.key(trail: $0) },
            "of the batches up to \(number) others are there than the last")
        return number
    }
}
