import TestSupport
import Testing
import Tidemark

@Suite("Replica ids")
struct ReplicaIDTests {
    @Test("Text and id are the same thing, and their orders agree")
    func roundTrip() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            var last = ReplicaID(high: 0, low: 0)
            for _ in 0..<500 {
                // Small halves too, whose leading zeros must not be lost.
                let id = ReplicaID(
                    high: random.next() >> UInt64(random.below(64)),
                    low: random.next() >> UInt64(random.below(64)))
                try require(id.description.utf8.count == 32, id.description)
                try require(ReplicaID(id.description) == id, id.description)
                try require(ReplicaID(id.description.uppercased()) == id, id.description)
                try require(
                    id.description.hasPrefix(id.shortDescription)
                        && id.shortDescription.utf8.count == 8, id.shortDescription)
                try require((last < id) == (last.description < id.description), "\(last), \(id)")
                last = id
            }
        }
    }

    @Test(
        "Everything but 32 hexadecimal digits is refused",
        arguments: [
            "", "0", String(repeating: "0", count: 31), String(repeating: "0", count: 33),
            String(repeating: "g", count: 32), String(repeating: "0", count: 31) + " ",
            "+" + String(repeating: "0", count: 31), String(repeating: "é", count: 16),
        ])
    func malformed(text: String) {
        #expect(ReplicaID(text) == nil)
    }
}
