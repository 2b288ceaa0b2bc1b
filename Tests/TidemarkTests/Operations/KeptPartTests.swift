import Glibc
import TestSupport
import Testing
import Tidemark

/// A taking over that ends with the opening of the store goes on in the next one with what is left
/// of it, whatever became of that; and what is given up takes no room.
@Suite("Parts that outlast an opening")
struct KeptPartTests {
    /// A source with one segment of several blocks, and a target that has some of these.
    private final class Setting {
        let fixture: AdoptionFixture
        let source: Dataset
        let offer: SegmentOffer
        let path: String
        let expected: [[Record]]
        /// Of the target's files, after it was closed.
        private(set) var files: [String: [UInt8]] = [:]

        /// - Parameter ranges: of one block each, that have come.
        init(ranges: Int) throws {
            let fixture = try AdoptionFixture()
            let source = try fixture.source.dataset("main")
            for number in 0..<40 {
                let text = String(repeating: "\(number) ", count: 100)
                try source.put(text, for: "key \(number)")
            }
            try fixture.source.sealAll()
            let target = try fixture.target.dataset("main")
            guard let offer = try source.segmentOffer(bytesMin: 0),
                let adoption = try target.beginAdoption(
                    of: offer, from: fixture.source.replicaID)
            else { throw Mismatch("nothing is offered") }
            try fetch(adoption, from: source, bytesMax: 1, ranges: ranges)
            try fixture.target.close()
            self.fixture = fixture
            self.source = source
            self.offer = offer
            path = fixture.target.path
            expected = try allVersions(source)
            files = try Files.contents(fixture.target.path)
        }

        var blockCount: Int { offer.runs.joined().reduce(0) { $0 + $1.blockCount } }

        func file(_ ending: String) throws -> String {
            guard let name = files.keys.first(where: { $0.hasSuffix(ending) }) else {
                throw Mismatch("there is no \(ending) among \(files.keys.sorted())")
            }
            return name
        }

        /// Puts everything back as it was.
        func restore() throws {
            for name in try Files.list(path) where files[name] == nil {
                try Files.remove("\(path)/\(name)")
            }
            for (name, bytes) in files { try Files.write(bytes, to: "\(path)/\(name)") }
        }

        func opened() throws -> Store {
            try Store.open(at: path, options: adoptionOptions())
        }

        /// Opens the target and brings what is missing, or gives up. Returns how many blocks need
        /// not come.
        func finish(from peer: ReplicaID? = nil, givesUp: Bool = false) throws -> Int {
            let store = try opened()
            let target = try store.dataset("main")
            let peer = peer ?? fixture.source.replicaID
            guard let adoption = try target.beginAdoption(of: offer, from: peer) else {
                throw Mismatch("nothing can be taken over")
            }
            let missing = adoption.missing.reduce(0) { $0 + $1.part.blockCount - $1.first }
            if givesUp {
                adoption.abandon()
                try requireNoParts()
                try store.close()
                return blockCount - missing
            }
            try fetch(adoption, from: source, bytesMax: 1)
            try require(try adoption.install(from: peer) != nil, "it came to nothing")
            let versions = try allVersions(target)
            try require(versions == expected, "\(versions.count) keys are there")
            try requireSound(store)
            try requireNoParts()
            try store.close()
            return blockCount - missing
        }

        func requireNoParts() throws {
            let names = try Files.list(path)
            try require(
                !names.contains { $0.hasSuffix(".part") || $0.hasSuffix(".from") }, "\(names)")
        }
    }

    @Test("It goes on after each range", arguments: 0...3)
    func eachRange(ranges: Int) throws {
        let setting = try Setting(ranges: ranges)
        try #require(setting.blockCount >= 3)
        #expect(try setting.finish() == ranges)
    }

    @Test("It goes on again after it went on, and after it was whole")
    func again() throws {
        let setting = try Setting(ranges: 1)
        for ranges in 2...setting.blockCount {
            let store = try setting.opened()
            let adoption = try #require(
                try store.dataset("main").beginAdoption(
                    of: setting.offer, from: setting.fixture.source.replicaID))
            try fetch(adoption, from: setting.source, bytesMax: 1, ranges: 1)
            let missing = adoption.missing.reduce(0) { $0 + $1.part.blockCount - $1.first }
            #expect(setting.blockCount - missing == ranges)
            try store.close()
        }
        #expect(try setting.finish() == setting.blockCount)
    }

    @Test("Each byte of both files, flipped and cut off", arguments: [".from", ".part"])
    func damage(ending: String) throws {
        withSeed(for: "damage(\(ending))") { seed in
            var random = SeededGenerator(seed)
            let setting = try Setting(ranges: 2)
            let name = try setting.file(ending)
            let whole = try #require(setting.files[name])
            var kept = [0, 0, 0]
            for offset in whole.indices {
                for cuts in [false, true] {
                    var bytes = whole
                    if cuts {
                        bytes.removeSubrange(offset...)
                    } else {
                        bytes[offset] ^= 1 << random.below(8)
                    }
                    try setting.restore()
                    try Files.write(bytes, to: "\(setting.path)/\(name)")
                    do {
                        // To bring the rest and compare it takes far longer.
                        let count = try setting.finish(givesUp: offset % 8 > 0)
                        kept[count] += 1
                    } catch {
                        throw Mismatch("byte \(offset), \(cuts ? "cut" : "flipped"): \(error)")
                    }
                }
            }
            // Some damage takes all, some the last range, and what is behind the ranges none.
            try require(kept[0] > 0 && kept[1] > 0, "\(kept)")
        }
    }

    @Test("Another peer, another offer and another dataset begin anew")
    func changed() throws {
        let setting = try Setting(ranges: 2)
        let stranger = ReplicaID(high: 7, low: 7)
        #expect(try setting.finish(from: stranger) == 0)
        try setting.restore()
        // The source has merged its segment with another one.
        try setting.source.put("more", for: "more")
        try setting.fixture.source.compact()
        let store = try setting.opened()
        let target = try store.dataset("main")
        let offer = try #require(try setting.source.segmentOffer(bytesMin: 0))
        let adoption = try #require(
            try target.beginAdoption(of: offer, from: setting.fixture.source.replicaID))
        #expect(adoption.missing.allSatisfy { $0.first == 0 })
        try setting.requireNoParts()
        try fetch(adoption, from: setting.source)
        #expect(try adoption.install(from: setting.fixture.source.replicaID) != nil)
        #expect(try allVersions(target) == allVersions(setting.source))
        try requireSound(store)
        try setting.requireNoParts()
    }

    @Test("What is given up takes no room")
    func givenUp() throws {
        let setting = try Setting(ranges: 2)
        // It outlasts openings in which nobody asks for it.
        for _ in 0..<2 { try setting.opened().close() }
        #expect(try Files.list(setting.path).filter { $0.hasSuffix(".part") }.count == 1)
        let store = try setting.opened()
        let target = try store.dataset("main")
        try target.put("of our own", for: "key")
        #expect(try !target.canBeAdopted())
        try setting.requireNoParts()
        try store.close()
        // One of the two files alone is a remain.
        for ending in [".from", ".part"] {
            try setting.restore()
            try Files.remove("\(setting.path)/\(try setting.file(ending))")
            try setting.opened().close()
            try setting.requireNoParts()
        }
        try setting.restore()
        let adopting = try setting.opened()
        let adoption = try #require(
            try adopting.dataset("main").beginAdoption(
                of: setting.offer, from: setting.fixture.source.replicaID))
        adoption.abandon()
        try setting.requireNoParts()
    }

    @Test(
        "What cannot be read now stays for the next opening", arguments: [EMFILE, EACCES, ENOMEM])
    func unreadableNow(number: Int32) throws {
        let setting = try Setting(ranges: 2)
        let faults = LastingFault(.open, of: ".from", with: number)
        let store = try Store.open(
            at: setting.path, options: adoptionOptions(), storage: SystemStorage(faults: faults))
        try store.close()
        #expect(try setting.finish() == 2)
    }

    @Test("After a week it is given up")
    func age() throws {
        let fixture = try AdoptionFixture()
        let source = try fixture.source.dataset("main")
        for number in 0..<40 { try source.put("value \(number)", for: "key \(number)") }
        try fixture.source.sealAll()
        let offer = try #require(try source.segmentOffer(bytesMin: 0))
        let storage = SimulatedStorage(seed: Seed(5))
        storage.clockMilliseconds = SystemStorage().wallClockMilliseconds()
        func parts() throws -> Int {
            try storage.listDirectory(simulatedPath).filter {
                $0.hasSuffix(".part") || $0.hasSuffix(".from")
            }.count
        }
        var store = try openSimulated(storage, adoptionOptions())
        let adoption = try #require(
            try store.dataset("main").beginAdoption(of: offer, from: fixture.source.replicaID))
        try fetch(adoption, from: source)
        try store.close()
        #expect(try parts() == 2)
        for (days, left) in [(6, 2), (2, 0)] as [(UInt64, Int)] {
            storage.clockMilliseconds += days * 86_400_000
            store = try openSimulated(storage, adoptionOptions())
            try store.close()
            #expect(try parts() == left)
        }
    }
}
