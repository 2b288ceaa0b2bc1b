import TestSupport
import Testing
import Tidemark

/// A damaged value file is a typed error for whoever needs the value, and a loss of that value
/// alone for repair.
@Suite("Damage to large values")
struct LargeValueDamageTests {
    @Test("Each byte of a value file")
    func bytesOfValueFile() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore(largeValueBytes: 200)
            let name = try store.file(".val")
            let whole = try #require(store.files[name])
            try require(whole.count > 3_000, "only \(whole.count) bytes")
            try require(try !store.outcome().isReported, "damaged from the beginning")
            let path = "\(store.path)/\(name)"
            var unnoticed: [Int] = []
            // All of the header and of the first values, and of the rest a byte in five, which are
            // others at each run.
            let chosen = random.below(5)
            for offset in whole.indices where offset < 1_200 || offset % 5 == chosen {
                try Files.overwrite([whole[offset] ^ 1 << random.below(8)], in: path, at: offset)
                do {
                    if try !store.outcome().isReported { unnoticed.append(offset) }
                } catch {
                    throw Mismatch("byte \(offset) flipped: \(error)")
                }
                try Files.overwrite([whole[offset]], in: path, at: offset)
            }
            try require(unnoticed.isEmpty, "unnoticed at \(unnoticed)")
        }
    }

    @Test("A value file cut at any length, or with something behind it")
    func truncation() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let store = try DamagedStore(largeValueBytes: 200)
            let name = try store.file(".val")
            let whole = try #require(store.files[name])
            let lengths = stride(from: random.below(37), to: whole.count, by: 37)
            for length in [0, whole.count - 1] + Array(lengths) {
                try Files.truncate("\(store.path)/\(name)", to: length)
                try require(try store.outcome().isReported, "cut to \(length) bytes")
                try Files.write(whole, to: "\(store.path)/\(name)")
            }
            try Files.write(whole + [0], to: "\(store.path)/\(name)")
            try require(try store.outcome().isReported, "a byte too many")
        }
    }

    @Test("A value file that is missing, or another's, is reported with its path")
    func missing() throws {
        let store = try DamagedStore(largeValueBytes: 200)
        let name = try store.file(".val")
        let path = "\(store.path)/\(name)"
        try Files.remove(path)
        for options in [apartOptions(), readOnly()] {
            let error = expectError(.corruption) {
                try Store.open(at: store.path, options: options)
            }
            #expect(error?.location?.path == path)
        }
        #expect(try Store.verify(at: store.path).damages.contains { $0.location?.path == path })
        let other = try DamagedStore(largeValueBytes: 200)
        try Files.write(try #require(other.files[name]), to: path)
        #expect(try store.outcome().isReported)
    }

    private func readOnly() -> StoreOptions {
        var options = apartOptions()
        options.isReadOnly = true
        return options
    }

    @Test("A segment that names other places than it counts is found by verification")
    func location() throws {
        let store = try DamagedStore(largeValueBytes: 200)
        let name = try store.file(".val")
        let whole = try #require(store.files[name])
        try Files.overwrite(
            [whole[whole.count / 2] ^ 0xFF], in: "\(store.path)/\(name)", at: whole.count / 2)
        let damages = try Store.verify(at: store.path).damages
        #expect(damages.count == 1)
        for damage in damages {
            #expect(damage.code == .corruption && damage.location?.path.hasSuffix(name) == true)
            #expect((damage.location?.offset ?? .max) < UInt64(whole.count))
        }
    }

    @Test("Repair loses the values that are damaged, and no other")
    func repair() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let fixture = try LargeValueStore(valueBytes: 1_000)
            try fixture.put(0..<20)
            try fixture.dataset.put("small", for: "a")
            try fixture.store.compact()
            try fixture.put(20..<24)
            try fixture.store.close()
            let name = try fixture.valueFiles[0]
            let whole = try Files.read("\(fixture.path)/\(name)")
            for round in 0..<20 {
                let offset = 80 + random.below(whole.count - 80)
                try Files.overwrite(
                    [whole[offset] ^ 1 << random.below(8)], in: "\(fixture.path)/\(name)",
                    at: offset)
                let target = fixture.directory["repaired-\(round)"]
                let report = try Store.repair(at: fixture.path, to: target)
                let repaired = try Store.open(at: target, options: apartOptions())
                let records = try repaired.dataset("main").records().collect()
                // A bit between two values belongs to none.
                let lost = 25 - records.count
                try require(lost <= 1 && report.losses.count == lost, "\(lost) lost: \(report)")
                try require(report.datasets.first?.entriesLost == lost, "\(report.datasets)")
                for loss in report.losses {
                    let start = Int(try #require(loss.offset))
                    try require(
                        loss.file == name && loss.kind == .block && loss.datasets == ["main"]
                            && (start..<(start + Int(loss.byteCount))).contains(offset),
                        "\(loss), not at \(offset)")
                }
                for record in records where record.keyText != "a" {
                    let number = try #require(
                        (0..<24).first { fixture.key($0) == record.key })
                    try require(record.value == fixture.value(number), "\(number) is another")
                }
                try require(try repaired.verify().damages.isEmpty, "the new store is damaged")
                try repaired.close()
                try Files.write(whole, to: "\(fixture.path)/\(name)")
            }
        }
    }

    @Test("Without its value file a store is repaired to what lies in line")
    func repairWithoutFile() throws {
        let fixture = try LargeValueStore(valueBytes: 1_000)
        try fixture.put(0..<10)
        try fixture.dataset.put("small", for: "a")
        try fixture.store.compact()
        try fixture.store.close()
        let name = try fixture.valueFiles[0]
        try Files.remove("\(fixture.path)/\(name)")
        let target = fixture.directory["repaired"]
        let report = try Store.repair(at: fixture.path, to: target)
        #expect(report.losses.map(\.kind) == [.missingFile])
        #expect(report.losses.map(\.file) == [name])
        #expect(report.datasets.first?.entriesLost == 10)
        let repaired = try Store.open(at: target, options: apartOptions())
        #expect(try repaired.dataset("main").records().collect().map(\.valueText) == ["small"])
        try repaired.close()
    }
}
