import TestSupport
import Testing

@testable import Tidemark

/// What becomes of the space of a log, before anything is in it and at its end.
@Suite("Space of logs")
struct LogSpaceTests {
    @Test(
        "The space of a log is written with zeros only where commits are synced",
        arguments: [Durability.memory, .process, .disk])
    func zeros(durability: Durability) throws {
        let storage = SimulatedStorage(seed: Seed(1))
        var options = quickOptions()
        options.durability = durability
        storage.startTracing()
        let store = try openSimulated(storage, options)
        let written = storage.trace.filter { $0.kind == .write && $0.path.hasSuffix(".log") }
            .reduce(0) { $0 + $1.count }
        #expect(written == (durability == .disk ? options.segmentBytes : 0))
        try store.close()
    }
    @Test(
        "A block may take the rest of a log to the last byte",
        .timeLimit(.minutes(Patience.minutes)),
        arguments: 0...40)
    func lastBlock(bytesLeft: Int) throws {
        let fixture = try StoreFixture()
        let engine = fixture.store.engine
        func activeLog() -> LogSegment? { engine.withLock { held in held.active?.log } }
        let (key, filler) = ([UInt8](repeating: 1, count: 8), [UInt8](repeating: 2, count: 4_000))
        var number = 0
        try fixture.dataset.put(filler, for: key)
        let vector = fixture.dataset.state.vector
        let fixedBytes =
            LogBlockWriter.byteCountMax(key: key.count, value: 0)
            + LogBlockWriter.definitionBytesMax(vector)
        while let log = activeLog(), log.remainingPayload > 12_000 {
            try fixture.dataset.put(filler, for: "\(number)".utf8.map { $0 })
            number += 1
        }
        let log = try #require(activeLog())
        let last = [UInt8](repeating: 3, count: log.remainingPayload - fixedBytes - bytesLeft)
        try fixture.dataset.put(last, for: key)
        #expect(activeLog() === log)
        try fixture.dataset.put(filler, for: "next".utf8.map { $0 })
        #expect(activeLog() !== log)
        #expect(try fixture.dataset.get(key) == last)
        try fixture.store.close()
    }
}
