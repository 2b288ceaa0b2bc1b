import TestSupport
import Testing
import Tidemark

/// Whatever a peer sends in place of its sealed blocks: nothing of it is taken that is not right in
/// itself, no call traps, and what was made of it is a sound store.
@Suite("Adoption of damaged and hostile blocks")
struct AdoptionDamageTests {
    private struct Prepared {
        let fixture: AdoptionFixture
        let source: Dataset
        let offer: SegmentOffer
        let part: SegmentOffer.Segment
        let blocks: StoredBlocks
    }

    private func prepared(_ compression: Compression) throws -> Prepared {
        let fixture = try AdoptionFixture(
            adoptionOptions(compression: compression, historyVersions: 2))
        let source = try fixture.source.dataset("main")
        for number in 0..<90 { try source.put("value \(number % 7)", for: "key \(number % 60)") }
        try source.put("soon gone", for: "expiring", expiresAt: 4_000_000_000_000)
        try source.delete("key 5")
        try fixture.source.sealAll()
        let offer = try #require(try source.segmentOffer(bytesMin: 0))
        let part = offer.runs[0][0]
        let blocks = try source.storedBlocks(
            of: part.number, identity: part.identity, from: 0, countMax: .max, bytesMax: .max)
        return Prepared(
            fixture: fixture, source: source, offer: offer, part: part,
            blocks: try #require(blocks))
    }

    /// Whether blocks could be taken over; the store must be sound if so.
    private func isTaken(
        _ blocks: StoredBlocks, _ offer: SegmentOffer, _ number: Int,
        in directory: TemporaryDirectory
    ) throws -> Bool {
        let store = try Store.open(
            at: directory["target \(number)"], options: adoptionOptions(historyVersions: 2))
        defer {
            try? store.close()
            Files.removeTree(directory["target \(number)"])
        }
        let target = try store.dataset("main")
        guard let adoption = try target.beginAdoption(of: offer) else { return false }
        do throws(StoreError) {
            _ = try adoption.add(blocks, of: offer.runs[0][0])
            guard try adoption.install(from: ReplicaID(high: 7, low: 7)) != nil else {
                return false
            }
        } catch {
            #expect(error.code == .invalidArgument, "\(error)")
            adoption.abandon()
            #expect(try target.count() == 0)
            return false
        }
        try requireSound(store)
        _ = try allVersions(target)
        _ = try target.digest()
        try target.put("after", for: "after")
        try store.compact()
        try requireSound(store)
        return true
    }

    @Test(
        "Each flipped byte of the blocks is refused",
        arguments: [Compression.lz4, .none])
    func flippedBytes(compression: Compression) throws {
        let it = try prepared(compression)
        let directory = it.fixture.directory
        #expect(try isTaken(it.blocks, it.offer, -1, in: directory))
        let store = it.fixture.target
        let target = try store.dataset("main")
        for place in it.blocks.bytes.indices {
            var blocks = it.blocks
            blocks.bytes[place] ^= 1 << UInt8(place % 8)
            let adoption = try #require(try target.beginAdoption(of: it.offer))
            expectError(.invalidArgument) { try adoption.add(blocks, of: it.part) }
            adoption.abandon()
        }
        for count in [0, 1, 23, 24, 25, it.blocks.bytes.count - 1] {
            var blocks = it.blocks
            blocks.bytes = Array(blocks.bytes.prefix(count))
            let adoption = try #require(try target.beginAdoption(of: it.offer))
            expectError(.invalidArgument) { try adoption.add(blocks, of: it.part) }
            adoption.abandon()
        }
        #expect(try target.count() == 0)
        #expect(try adoptWhole(it.source, into: target) != nil)
        try requireSound(store)
    }

    @Test("Changed bytes under a right checksum are refused or make a sound store")
    func forgedChecksums() throws {
        try withSeedThrowing { random in
            let it = try prepared(.none)
            var taken = 0
            var refused = 0
            for round in 0..<400 {
                var blocks = it.blocks
                let range = blockRanges(blocks.bytes)[0]
                let place = range.lowerBound + 24 + random.below(range.count - 24)
                blocks.bytes[place] = UInt8(truncatingIfNeeded: random.next())
                reseal(&blocks.bytes, range)
                if try isTaken(blocks, it.offer, round, in: it.fixture.directory) {
                    taken += 1
                } else {
                    refused += 1
                }
            }
            try require(taken > 20 && refused > 20, "taken \(taken), refused \(refused)")
        }
    }

    @Test("An offer that says what cannot be is not taken up")
    func impossibleOffers() throws {
        let it = try prepared(.lz4)
        let target = try it.fixture.target.dataset("main")
        var offers: [SegmentOffer] = []
        func change(_ body: (inout SegmentOffer) -> Void) {
            var offer = it.offer
            body(&offer)
            offers.append(offer)
        }
        change { $0.runs = [] }
        change { $0.runs.append([]) }
        change { $0.runs.append($0.runs[0]) }
        change { $0.dataset = 0 }
        change { $0.dataset = .max }
        change { $0.dataset = 1 << 30 }
        change { $0.runs[0][0].blockCount = 0 }
        change { $0.runs[0][0].blockCount = 1 << 40 }
        change { $0.runs[0][0].entryCount = 1 << 40 }
        change { $0.expiredThrough = 1 << 60 }
        change { $0.wipedTime = .max }
        change { $0.collectedThrough = 1 << 30 }
        change { $0.wholeFrom = 1 << 30 }
        change {
            $0.knowledge = DatasetKnowledge(
                vector: $0.knowledge.vector, syncCount: SyncCount(rawValue: 1 << 56),
                lifecycle: $0.knowledge.lifecycle)
        }
        change {
            $0.outstanding = VersionVector([Dot(replica: it.fixture.target.replicaID, counter: 1)])
        }
        change {
            let replica = $0.knowledge.lifecycle.replica
            $0.outstanding = VersionVector([Dot(replica: replica, counter: .max)])
        }
        for offer in offers {
            #expect(try target.beginAdoption(of: offer) == nil)
        }
        // What can only be found out as the blocks come.
        offers = []
        change { $0.runs[0][0].entryCount += 1 }
        change { $0.runs[0][0].entryCount -= 1 }
        change { $0.runs[0][0].number += 1 }
        change { $0.runs[0][0].tables = [] }
        change { $0.runs[0][0].tables = [0, 0, 0, 0] }
        change { $0.dataset += 1 }
        for offer in offers {
            let adoption = try #require(try target.beginAdoption(of: offer))
            expectError(.invalidArgument) { try adoption.add(it.blocks, of: offer.runs[0][0]) }
            adoption.abandon()
        }
        #expect(try adoptWhole(it.source, into: target) != nil)
    }

    @Test("The same segment twice, as two runs, is refused at the end")
    func runsTwice() throws {
        let it = try prepared(.lz4)
        let target = try it.fixture.target.dataset("main")
        var offer = it.offer
        var again = it.part
        // The lower 32 bits are in the blocks.
        again.number += 1 << 32
        for runs in [[[it.part], [again]], [[it.part, again]]] {
            offer.runs = runs
            let adoption = try #require(try target.beginAdoption(of: offer))
            _ = try adoption.add(it.blocks, of: it.part)
            _ = try adoption.add(it.blocks, of: again)
            expectError(.invalidArgument) { try adoption.install(from: ReplicaID(high: 7, low: 7)) }
            adoption.abandon()
        }
        #expect(try target.count() == 0)
        try requireSound(it.fixture.target)
    }

    private func withSeedThrowing(
        _ body: (inout SeededGenerator) throws -> Void
    ) throws {
        let seed = Seed.drawn(for: "forgedChecksums")
        var random = SeededGenerator(seed)
        try body(&random)
    }

    /// Gives a changed block the checksum that its bytes have now.
    private func reseal(_ bytes: inout [UInt8], _ range: Range<Int>) {
        let checksum = unsafe bytes[range.dropFirst(8)].withUnsafeBytes { unsafe checksum64($0) }
        for index in 0..<8 {
            let byte = UInt8(truncatingIfNeeded: checksum >> (8 * UInt64(index)))
            bytes[range.lowerBound + index] = byte
        }
    }
}
