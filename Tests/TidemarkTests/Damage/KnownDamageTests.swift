import TestSupport
import Testing
import Tidemark

/// What is known of damage: which file and place, and which keys of which dataset may be in it.
@Suite("Known damage")
struct KnownDamageTests {
    private func fixture() throws -> StoreFixture {
        var options = quickOptions()
        options.compactsAutomatically = false
        let fixture = try StoreFixture(options)
        let other = try fixture.store.dataset("other")
        for number in 0..<2_000 {
            try fixture.dataset.put("value \(number) \(number * 7_919)", for: "key \(number)")
            try other.put("value \(number)", for: "other \(number)")
        }
        try fixture.store.compact()
        try fixture.store.close()
        return fixture
    }

    private func opened(_ fixture: StoreFixture) throws -> Store {
        var options = quickOptions()
        options.compactsAutomatically = false
        return try Store.open(at: fixture.path, options: options)
    }

    @Test("A whole store knows of none, and a closed one tells nothing")
    func none() throws {
        let fixture = try fixture()
        defer { withExtendedLifetime(fixture) {} }
        let store = try opened(fixture)
        #expect(try store.damage().isEmpty)
        _ = try store.verify()
        #expect(try store.damage().isEmpty)
        try store.close()
        expectError(.closed) { try store.damage() }
    }

    @Test("Every key that cannot be read lies in a range that is told of")
    func keys() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let fixture = try fixture()
            let names = try Files.list(fixture.path).filter { $0.hasSuffix(".seg") }
            let path = "\(fixture.path)/\(names[0])"
            let whole = try Files.read(path)
            // Where the data blocks end stands in the footer.
            let dataEnd = whole[(whole.count - 144)..<(whole.count - 136)].reversed()
                .reduce(0) { $0 << 8 | Int($1) }
            for _ in 0..<10 {
                let offset = 6_000 + random.below(dataEnd - 12_000)
                try Files.overwrite([whole[offset] ^ 0x10], in: path, at: offset)
                try check(fixture, offset: offset)
                try Files.overwrite([whole[offset]], in: path, at: offset)
            }
        }
    }

    private func check(_ fixture: StoreFixture, offset: Int) throws {
        let store = try opened(fixture)
        for (name, prefix) in [("main", "key"), ("other", "other")] {
            let dataset = try store.dataset(name)
            for number in 0..<2_000 {
                let key = "\(prefix) \(number)"
                do throws(StoreError) {
                    _ = try dataset.get(key)
                } catch {
                    let damage = try dataset.damage()
                    try require(
                        damage.contains { $0.keys?.contains(bytes(key)) ?? false },
                        "\(key) lies in no range of \(damage): \(error)")
                }
            }
        }
        let known = Set(try store.damage())
        let found = try store.verify().damages
        try require(Set(found.map(\.location)).count == 1, "\(found)")
        let all = try store.damage()
        try require(known.isSubset(of: all), "\(known) is not all of \(all)")
        for damage in all {
            try require(UInt64(offset) >= damage.offset ?? 0, "\(damage)")
            if damage.kind == .records {
                let end = (damage.offset ?? 0) + damage.byteCount
                try require(UInt64(offset) < end, "\(damage), and not \(offset)")
                try require(damage.offset == found.first?.location?.offset, "\(found)")
            }
            try require(found.first?.location?.path.hasSuffix(damage.file) ?? false, "\(found)")
        }
        try require(!all.isEmpty, "nothing is known")
        try store.close()
    }
}
