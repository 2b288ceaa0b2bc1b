import TestSupport
import Testing
import Tidemark

@testable import Torture

/// The comparison at the end of a round finds what it is there to find, and nothing else.
@Suite struct TortureModelTests {
    /// Replicas that see each other's writes at once: the last writer wins.
    private struct World {
        var model: TortureModel
        var found: [TortureKey: Found] = [:]
        /// A value that was written to each key of which there ever was one.
        private(set) var written: [TortureKey: [UInt8]] = [:]
        private var random: SeededGenerator
        private var clock: UInt64 = 1_000

        init(_ seed: Seed) {
            model = TortureModel(seed, replicaCount: 3)
            random = SeededGenerator(seed)
        }

        mutating func stamp(of replica: Int) -> Stamp {
            clock += 1
            let id = ReplicaID(high: UInt64(replica), low: 1)
            return Stamp(
                time: HybridTime(rawValue: clock), dot: Dot(replica: id, counter: clock))
        }

        mutating func run(_ operationCount: Int) throws {
            for _ in 0..<operationCount {
                let replica = random.below(3)
                let number = model.acknowledged[replica] + 1
                let writes = model.streams[replica].writes(of: number)
                for write in writes {
                    found[write.key] = Found(stamp: stamp(of: replica), value: write.value)
                }
                var standings: [Standing] = []
                for key in Set(writes.map(\.key)) {
                    let value = found[key]?.value
                    if let value { written[key] = value }
                    standings.append(
                        Standing(key: key, stamp: found[key]?.stamp, isDeleted: value == nil))
                }
                try model.acknowledge(number, of: replica, standings)
            }
        }

        /// One of the keys of that sort, to which a value was written at some time.
        func key(isShared: Bool, isDeleted: Bool) -> TortureKey? {
            found.keys.sorted { $0.description < $1.description }.first { key in
                (key.owner == nil) == isShared && (found[key]?.value == nil) == isDeleted
                    && written[key] != nil
            }
        }

        var differences: [String] { model.differences(in: found) }
    }

    private func makeWorld() throws -> World {
        var world = World(Seed.drawn())
        try world.run(3_000)
        try #require(world.differences == [])
        return world
    }

    private func expectOne(
        _ world: World, at key: TortureKey, saying text: String = "",
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let differences = world.differences
        #expect(differences.count == 1, sourceLocation: sourceLocation)
        #expect(
            differences.first?.hasPrefix("\(key): \(text)") == true, "\(differences)",
            sourceLocation: sourceLocation)
    }

    @Test func deletionsMayBeForgotten() throws {
        var world = try makeWorld()
        for isShared in [true, false] {
            let key = try #require(world.key(isShared: isShared, isDeleted: true))
            world.found[key] = nil
            #expect(world.differences == [])
        }
    }

    @Test(arguments: [true, false])
    func aWriteLost(isShared: Bool) throws {
        var world = try makeWorld()
        let key = try #require(world.key(isShared: isShared, isDeleted: false))
        world.found[key] = nil
        expectOne(world, at: key)
    }

    @Test func anOlderWriteInItsPlace() throws {
        var world = try makeWorld()
        let key = try #require(world.key(isShared: true, isDeleted: false))
        let value = try #require(world.found[key]?.value)
        let dot = Dot(replica: ReplicaID(high: 0, low: 1), counter: 1)
        world.found[key] = Found(
            stamp: Stamp(time: HybridTime(rawValue: 1), dot: dot), value: value)
        expectOne(world, at: key, saying: "is older")
    }

    @Test(arguments: [true, false])
    func aDeletionUndone(isShared: Bool) throws {
        var world = try makeWorld()
        let key = try #require(world.key(isShared: isShared, isDeleted: true))
        let value = try #require(world.written[key])
        let dot = Dot(replica: ReplicaID(high: 0, low: 1), counter: 1)
        world.found[key] = Found(
            stamp: Stamp(time: HybridTime(rawValue: 1), dot: dot), value: value)
        expectOne(world, at: key, saying: isShared ? "is back" : "")
    }

    @Test func aWriteThatNobodyTold() throws {
        var world = try makeWorld()
        let key = try #require(world.key(isShared: true, isDeleted: false))
        let value = try #require(world.found[key]?.value)
        world.found[key] = Found(stamp: world.stamp(of: 0), value: value)
        expectOne(world, at: key, saying: "newer")
    }

    @Test(arguments: [true, false])
    func aValueThatNobodyWrote(isShared: Bool) throws {
        var world = try makeWorld()
        let key = try #require(world.key(isShared: isShared, isDeleted: false))
        let found = try #require(world.found[key])
        let longer = (found.value ?? []) + [0]
        let values: [[UInt8]] = [[], Array("0.1 ".utf8), Array("9.1 x".utf8), longer]
        for value in values {
            world.found[key] = Found(stamp: found.stamp, value: value)
            expectOne(world, at: key)
        }
    }

    @Test func anOperationLeftOut() throws {
        var world = try makeWorld()
        let number = world.model.acknowledged[1]
        for wrong in [number, number + 2] {
            #expect(throws: Mismatch.self) {
                try world.model.acknowledge(wrong, of: 1, [])
            }
        }
    }

    /// A replica finds at a key of its own what it has just written there.
    @Test func itsOwnWriteNotThere() throws {
        var world = try makeWorld()
        var number = world.model.acknowledged[0]
        var writes: [TortureStream.Write] = []
        repeat {
            if number > world.model.acknowledged[0] {
                try world.model.acknowledge(number, of: 0, [])
            }
            number += 1
            writes = world.model.streams[0].writes(of: number)
        } while writes.count != 1 || writes[0].key.owner == nil
        let standing = Standing(
            key: writes[0].key, stamp: world.stamp(of: 0), isDeleted: writes[0].value != nil)
        #expect(throws: Mismatch.self) {
            try world.model.acknowledge(number, of: 0, [standing])
        }
    }

    /// What was deleted and forgotten before anybody could tell the stamp may be there or not.
    @Test func aDeletionOfNoKnownStamp() throws {
        var world = try makeWorld()
        let key = try #require(world.key(isShared: true, isDeleted: false))
        var number = world.model.acknowledged[2] + 1
        while !world.model.streams[2].writes(of: number).contains(where: {
            $0.key == key && $0.value == nil
        }) {
            try world.run(1)
            number = world.model.acknowledged[2] + 1
        }
        let gone = Standing(key: key, stamp: nil, isDeleted: true)
        let others = world.model.streams[2].writes(of: number).filter { $0.key != key }
        for write in others {
            world.found[write.key] = Found(stamp: world.stamp(of: 2), value: write.value)
        }
        let standings = Set(others.map(\.key)).map { other in
            Standing(
                key: other, stamp: world.found[other]?.stamp,
                isDeleted: world.found[other]?.value == nil)
        }
        try world.model.acknowledge(number, of: 2, standings + [gone])
        world.found[key] = nil
        #expect(world.differences == [])
        world.found[key] = Found(stamp: world.stamp(of: 2), value: nil)
        #expect(world.differences == [])
    }
}
