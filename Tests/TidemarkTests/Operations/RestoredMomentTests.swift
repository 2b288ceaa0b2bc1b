import TestSupport
import Testing
import Tidemark

/// A store made of what another held at a past time.
@Suite("Restore of a past moment")
struct RestoredMomentTests {
    private static let options = StoreOptions(
        durability: .process, segmentBytes: 1 << 20, historyVersions: 3,
        compactsAutomatically: false)

    /// Three moments, an hour apart, on a disk whose clock the test sets.
    private func filled(_ storage: SimulatedStorage) throws -> [HybridTime] {
        let store = try openSimulated(storage, Self.options)
        let dataset = try store.dataset("main")
        var times: [HybridTime] = []
        for round in 0..<3 {
            for index in 0..<6 {
                try dataset.put("\(round) \(index)", for: "\(index)", durability: .disk)
            }
            try dataset.delete("\(round)")
            if round == 1 { try store.dataset("late").put("x", for: "y") }
            times.append(HybridTime(milliseconds: storage.clockMilliseconds, counter: .max))
            storage.clockMilliseconds += 3_600_000
            if round == 0 { try store.sealAll() }
        }
        try store.close()
        return times
    }

    @Test("It has the records of that time with their versions, and a name of its own")
    func moments() throws {
        let storage = SimulatedStorage(seed: Seed(21))
        let times = try filled(storage)
        var options = Self.options
        options.isReadOnly = true
        let source = try openSimulated(storage, options)
        for (round, time) in times.enumerated() {
            let target = "/restored \(round)"
            let restored = try Store.restore(
                from: simulatedPath, to: target, at: time, storage: storage)
            #expect(restored.datasets.map(\.name) == (round == 0 ? ["main"] : ["late", "main"]))
            let store = try Store.open(at: target, options: Self.options, storage: storage)
            let wanted = try source.dataset("main").records(
                at: .time(time), includingDeleted: true
            ).collect()
            let found = try store.dataset("main").records(includingDeleted: true).collect()
            #expect(found.map(\.key) == wanted.map(\.key))
            #expect(found.map(\.value) == wanted.map(\.value))
            #expect(found.map(\.version) == wanted.map(\.version))
            #expect(found.contains { $0.isDeleted && $0.keyText == "\(round)" })
            #expect(store.replicaID != source.replicaID)
            // Nobody else had a part in it, so it claims all, and goes on from there.
            let dot = try store.dataset("main").put("new", for: "0")
            #expect(dot.replica == store.replicaID)
            #expect(try store.verify().damages.isEmpty)
            try store.close()
        }
        try source.close()
    }

    @Test("A time that cannot be read leaves nothing behind")
    func refusals() throws {
        let storage = SimulatedStorage(seed: Seed(22))
        let times = try filled(storage)
        let late = HybridTime(milliseconds: storage.clockMilliseconds + 1_000_000, counter: 0)
        expectError(.invalidArgument) {
            try Store.restore(from: simulatedPath, to: "/new", at: late, storage: storage)
        }
        var options = Self.options
        options.historyVersions = 0
        let store = try openSimulated(storage, options)
        try store.compact()
        try store.close()
        expectError(.historyExpired) {
            try Store.restore(from: simulatedPath, to: "/new", at: times[0], storage: storage)
        }
        expectError(.notAStore) {
            try StoreContents.read(at: "/new", storage: storage)
        }
        expectError(.notAStore) {
            try Store.restore(from: "/none", to: "/new", at: times[0], storage: storage)
        }
    }
}
