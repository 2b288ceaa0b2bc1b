import TestSupport
import Testing
import Tidemark

@testable import Torture

/// What children tell is read as it was meant, and nothing else is taken for it.
@Suite struct TellingTests {
    private static func standing(_ random: inout SeededGenerator) -> Standing {
        let owner = random.oneIn(2) ? random.below(3) : nil
        let key = TortureKey(
            dataset: random.below(2), owner: owner, number: random.below(TortureKey.sharedCount))
        if random.oneIn(8) { return Standing(key: key, stamp: nil, isDeleted: true) }
        let dot = Dot(
            replica: ReplicaID(high: random.next(), low: random.next()), counter: random.next())
        let stamp = Stamp(time: HybridTime(rawValue: random.next()), dot: dot)
        return Standing(key: key, stamp: stamp, isDeleted: random.oneIn(2))
    }

    @Test func everyLineIsReadBack() throws {
        var random = SeededGenerator(Seed.drawn())
        for _ in 0..<500 {
            let number = UInt64(1 + random.below(1_000_000))
            let standings = (0..<random.below(10)).map { _ in Self.standing(&random) }
            let tellings: [Telling] = [
                .opened(ReplicaID(high: random.next(), low: random.next())),
                .listening(port: random.below(65_536)), .wrote(number, standings),
                .exchanged(pulled: random.below(1_000), pushed: random.below(1_000)),
                .failed("unreachable"), .rested(moved: random.below(1_000)),
                .fault("what may never be: 1 2 3"),
            ]
            for telling in tellings {
                #expect(Telling(Substring(telling.line)) == telling)
                // What a pipe takes at once.
                #expect(telling.line.utf8.count < 4_096)
            }
        }
    }

    @Test func aFaultIsOneLine() {
        #expect(Telling.fault("one\ntwo\n").line == "fault one; two")
    }

    @Test(arguments: [
        "", "opened", "opened 12", "wrote", "wrote x", "wrote 0", "wrote 1 left:s/1",
        "wrote 1 left:s/1=+1.2", "wrote 1 left:s/24=", "wrote 1 up:s/1=", "exchanged 1",
        "listening", "failed", "rested", "sang 1",
    ])
    func whatMeansNothing(_ line: String) {
        #expect(Telling(Substring(line)) == nil)
    }

    @Test func anOrderIsReadBack() throws {
        let order = ChildOrder(
            role: .storm, directory: "/a directory", seed: Seed(0xABC), replica: 2, life: 7,
            number: 12, writeCount: 40, url: "http://127.0.0.1:1", plantedBugs: [.reuseDot])
        let read = try #require(ChildOrder(order.arguments))
        #expect(read.arguments == order.arguments)
        #expect(read.options == order.options)
        #expect(read.writeCount == 40)
        #expect(ChildOrder(Array(order.arguments.dropLast())) == nil)
        #expect(ChildOrder(["20", "--seed", "1"]) == nil)
    }

    @Test func aStreamIsTheSameForAll() throws {
        let seed = Seed.drawn()
        var keys: Set<TortureKey> = []
        for replica in 0..<3 {
            for number in UInt64(1)...500 {
                let writes = TortureStream(seed: seed, replica: replica).writes(of: number)
                #expect(writes == TortureStream(seed: seed, replica: replica).writes(of: number))
                for write in writes {
                    #expect(write.key.owner ?? replica == replica)
                    #expect(TortureKey(Substring(write.key.description)) == write.key)
                    keys.insert(write.key)
                    guard let value = write.value else { continue }
                    let origin = try #require(TortureStream.origin(of: value))
                    #expect(origin.replica == replica)
                    #expect(origin.number == number)
                }
            }
        }
        #expect(keys.contains { $0.owner == nil })
    }
}
