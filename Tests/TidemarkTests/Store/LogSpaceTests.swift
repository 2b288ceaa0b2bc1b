import TestSupport
import Testing
import Tidemark

/// What becomes of the space of a log before anything is in it.
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
}
