import TestSupport
import Testing
import Tidemark

/// What the compaction of a range does with large values: as a whole merge it gives up value files
/// of which little is used, but only those of which it meets all that is.
@Suite("Large values and compaction of a range")
struct RangeCompactionValueTests {
    @Test("A sparse value file of which all is met goes")
    func sparse() throws {
        var fixture = try LargeValueStore(valueBytes: 20_000)
        try fixture.put(0..<30)
        try fixture.store.compact()
        let first = try fixture.valueFiles
        try fixture.put(0..<20, round: 1)
        try fixture.dataset.compact()
        // That the file became sparse is known when the merge is over.
        #expect(try Set(fixture.valueFiles).isSuperset(of: first))
        try fixture.dataset.compact(.only("key 1"))
        #expect(try Set(fixture.valueFiles).isDisjoint(with: first))
        for _ in 0..<2 {
            for number in 0..<30 {
                #expect(
                    try fixture.dataset.get(fixture.key(number))
                        == fixture.value(number, round: number < 20 ? 1 : 0))
            }
            try fixture.requireWhole()
            try fixture.reopen()
        }
        try fixture.store.close()
    }

    /// Runs of many small segments, of which ranges meet some, so that handles of one file come to
    /// lie in several segments and runs.
    @Test("For each byte that moving writes at least one comes back")
    func moving() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let storage = SimulatedStorage(seed: Seed(random.next()))
            var options = apartOptions(1_000)
            options.segmentEntriesMax = 8
            options.compression = .none
            let store = try openSimulated(storage, options)
            let dataset = try store.dataset("main")
            var model: [String: [UInt8]] = [:]
            func key(_ number: Int) -> String { "\(100 + number)" }
            var movedSum = 0
            for round in 0..<60 {
                for _ in 0..<(1 + random.below(20)) {
                    let key = key(random.below(60))
                    if random.oneIn(3) {
                        try dataset.delete(key)
                        model[key] = nil
                    } else {
                        let value = random.bytes(1_000 + random.below(2_000))
                        try dataset.put(value, for: bytes(key))
                        model[key] = value
                    }
                }
                // Seals what is in the log.
                try dataset.compact(KeyRange(from: "b", upTo: "a"))
                let start = random.below(60)
                let end = start + 1 + random.below(60 - start)
                let (moved, gone) = try valueBytes(storage) {
                    try dataset.compact(KeyRange(from: key(start), upTo: key(end)))
                }
                try require(moved <= gone, "round \(round): \(moved) moved, \(gone) gone")
                movedSum += moved
                let found = try dataset.records().collect()
                try require(found.count == model.count, "\(found.count) of \(model.count)")
                for record in found {
                    try require(
                        record.value == model[record.keyText ?? ""], "\(record.key) differs")
                }
            }
            // Twice: that a file became sparse is known when a merge is over.
            for _ in 0..<2 {
                movedSum += try valueBytes(storage) { try dataset.compact() }.written
            }
            try require(movedSum > 0, "nothing was moved")
            let files = try store.usage().valueFiles
            try require(files.allSatisfy { 2 * $0.usedBytes + 64 >= $0.fileBytes }, "\(files)")
            let damages = try store.verify().damages
            try require(damages.isEmpty, "\(damages)")
            try store.close()
        }
    }

    /// Bytes of value files that something writes, and of those that it removes.
    private func valueBytes(
        _ storage: SimulatedStorage, while body: () throws -> Void
    ) throws -> (written: Int, removed: Int) {
        func sizes() throws -> [String: Int] {
            var sizes: [String: Int] = [:]
            for name in try storage.listDirectory(simulatedPath) where name.hasSuffix(".val") {
                sizes[name] = storage.contents(of: "\(simulatedPath)/\(name)")?.count
            }
            return sizes
        }
        let before = try sizes()
        try body()
        let after = try sizes()
        return (
            after.filter { before[$0.key] == nil }.reduce(0) { $0 + $1.value },
            before.filter { after[$0.key] == nil }.reduce(0) { $0 + $1.value }
        )
    }
}
