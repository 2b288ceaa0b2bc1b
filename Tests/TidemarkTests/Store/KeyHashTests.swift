import TestSupport
import Testing

@testable import Tidemark

/// Who may write chooses the keys. Without the seed that is the store's secret nobody can choose
/// them so that they all want the same place of a table.
@Suite("Hashes of keys")
struct KeyHashTests {
    private static let count = 2_000

    private func options() -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        return options
    }

    private func identity(of store: Store) -> StoreIdentity {
        store.engine.identity
    }

    /// In format version 1 the seed was the number of the dataset.
    @Test("Keys chosen by the number of their dataset lead to no long search")
    func withoutTheSeed() throws {
        let fixture = try StoreFixture(options())
        let keys = ChosenKeys.ofOnePlace(Self.count, seed: 1)
        for key in keys { try fixture.dataset.put([1], for: key) }
        #expect(fixture.store.counters().longKeySearches == 0)
        #expect(try fixture.dataset.count() == Self.count)
        try fixture.store.close()
    }

    /// Or the count would be 0 because it cannot be anything else.
    @Test("Keys chosen by the seed itself lead to long searches, which are counted")
    func withTheSeed() throws {
        let fixture = try StoreFixture(options())
        // The first dataset has the number 1.
        let seed = identity(of: fixture.store).keyHash.seed &+ 0x9E37_79B9_7F4A_7C15
        let keys = ChosenKeys.ofOnePlace(Self.count, seed: seed)
        let hashes = keys.map { key in
            unsafe key.withUnsafeBytes {
                identity(of: fixture.store).keyHash.of(unsafe ByteView($0), in: 1)
            }
        }
        #expect(Set(hashes.map { $0 & 0xFFFFF }).count == 1)
        #expect(Set(hashes.map { $0 >> 48 }).count == 1 && Set(hashes).count == Self.count)
        for key in keys { try fixture.dataset.put([1], for: key) }
        let counted = fixture.store.counters().longKeySearches
        #expect(counted > Self.count / 2)
        for key in keys.prefix(20) { #expect(try fixture.dataset.get(key) == [1]) }
        // What a log had is not forgotten with it.
        try fixture.store.sealAll()
        #expect(fixture.store.counters().longKeySearches == counted)
        try fixture.store.close()
    }

    @Test("Each store has another seed, which its backups and what is restored from them keep")
    func seeds() throws {
        let fixture = try StoreFixture(options())
        let other = try StoreFixture(options())
        defer { withExtendedLifetime((fixture, other)) {} }
        let own = identity(of: fixture.store)
        #expect(own.keyHash.seed != identity(of: other.store).keyHash.seed)
        #expect(own != identity(of: other.store))
        try fixture.dataset.put("1", for: "a")
        let backup = fixture.directory["backup"]
        let restored = fixture.directory["restored"]
        try fixture.store.backup(to: backup)
        try Store.restore(from: backup, to: restored)
        try fixture.store.close()
        for (path, isReadOnly) in [(fixture.path, false), (backup, true), (restored, false)] {
            var options = options()
            options.isReadOnly = isReadOnly
            let store = try Store.open(at: path, options: options)
            #expect(identity(of: store) == own)
            #expect(identity(of: store).keyHash.seed == own.keyHash.seed)
            #expect(try store.dataset("main").text("a") == "1")
            try store.close()
        }
        try other.store.close()
    }
}

/// Keys of eight bytes whose hashes somebody who knows the seed has chosen: for so short a key
/// XXH3-64 can be undone step by step.
private enum ChosenKeys {
    /// Of so many keys the lowest 20 bits of the hashes are the same, and the highest 16.
    static func ofOnePlace(_ count: Int, seed: UInt64) -> [[UInt8]] {
        let common: UInt64 = 0x1234 << 48 | 0x56789
        return (0..<count).map { key(of: common | UInt64($0) << 20, seed: seed) }
    }

    private static let factor: UInt64 = 0x9FB2_1C65_1E98_DF25
    /// Of the secret of XXH3 that is nobody's, the eight bytes from 8 on and those from 16 on, one
    /// with the other.
    private static let secret: UInt64 = 0xC73A_B174_C5EC_D5A2

    private static func key(of hash: UInt64, seed: UInt64) -> [UInt8] {
        var inverse = factor
        for _ in 0..<6 { inverse = inverse &* (2 &- factor &* inverse) }
        var number = hash
        for _ in 0..<3 { number = hash ^ (number >> 28) }
        number = number &* inverse
        number ^= (number >> 35) + 8
        number = number &* inverse
        // The 64th power of this step changes nothing.
        for _ in 0..<63 { number ^= rotated(number, 49) ^ rotated(number, 24) }
        let low = UInt32(truncatingIfNeeded: seed)
        number ^= secret &- (seed ^ UInt64(low.byteSwapped) << 32)
        // The upper half is the first four bytes, the lower half the last four.
        return [32, 40, 48, 56, 0, 8, 16, 24].map { (shift: UInt64) in
            UInt8(truncatingIfNeeded: number >> shift)
        }
    }

    private static func rotated(_ number: UInt64, _ bits: UInt64) -> UInt64 {
        number << bits | number >> (64 - bits)
    }
}
