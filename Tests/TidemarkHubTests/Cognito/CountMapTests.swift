import TestSupport
import Testing

@testable import TidemarkHub

/// The API's counts, against a model that notes the count of every single write.
struct CountMapTests {
    /// Calls and native writes to a dataset of few keys, with the true count of each place.
    private struct Model {
        var map = CountMap()
        /// The store's count of the dataset.
        var position: UInt64 = 0
        /// The API's, by the store's.
        var counts: [UInt64: UInt64] = [0: 0]
        /// Where each key was last written.
        var places: [Int: UInt64] = [:]

        mutating func call(_ keys: [Int]) {
            map.noteCall(after: position, size: UInt64(keys.count))
            let count = (counts[position] ?? 0) + 1
            for key in keys {
                position += 1
                counts[position] = count
                places[key] = position
            }
        }

        var livePositions: [UInt64] { places.values.sorted() }
    }

    private static func grown(_ generator: inout SeededGenerator, calls: Int) -> Model {
        var model = Model()
        for _ in 0..<calls {
            let size = generator.oneIn(2) ? 1 : 1 + generator.below(6)
            // Some keys are written seldom, so that old places stay in use.
            let keys = (0..<12).shuffled(using: &generator).prefix(size)
            model.call(keys.filter { $0 < 9 || generator.oneIn(10) })
        }
        return model
    }

    @Test("every write has the count of its call")
    func counts() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<50 {
            let model = Self.grown(&generator, calls: 1 + generator.below(60))
            let isRight = model.counts.allSatisfy { position, count in
                model.map.count(at: position) == count
            }
            #expect(isRight)
        }
    }

    @Test("what is newer than a count is behind its place, and nothing else")
    func places() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<30 {
            let model = Self.grown(&generator, calls: 1 + generator.below(40))
            for since in 0...(model.map.count(at: model.position) + 2) {
                let place = model.map.position(atCount: since)
                let isRight = model.counts.allSatisfy { position, count in
                    (position > place) == (count > since)
                }
                #expect(isRight, "since \(since)")
            }
        }
    }

    @Test("pruning changes no count of a record that is there, nor of what comes after")
    func pruning() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<40 {
            var model = Model()
            for _ in 0..<4 {
                for _ in 0..<60 {
                    let size = 1 + generator.below(5)
                    model.call(
                        Array((0..<12).shuffled(using: &generator).prefix(size)))
                }
                let before = model.map.anchors.count
                model.map.prune(keeping: model.livePositions)
                #expect(model.map.anchors.count <= before)
                #expect(model.map.anchors.count <= model.places.count + 1)
                let end = model.map.count(at: model.position)
                #expect(end == model.counts[model.position])
                for position in model.livePositions {
                    #expect(model.map.count(at: position) == model.counts[position])
                }
                for since in 0...end {
                    let place = model.map.position(atCount: since)
                    let isRight = model.livePositions.allSatisfy { position in
                        (position > place) == ((model.counts[position] ?? 0) > since)
                    }
                    #expect(isRight, "since \(since)")
                }
            }
        }
    }

    @Test("counts never fall, pruned or not")
    func monotony() {
        var generator = SeededGenerator(Seed.drawn())
        var model = Self.grown(&generator, calls: 80)
        model.map.prune(keeping: model.livePositions)
        var last: UInt64 = 0
        for position in 0...model.position {
            let count = model.map.count(at: position)
            #expect(count >= last)
            last = count
        }
    }

    @Test("any count that a client may send has a place")
    func hostileCounts() {
        var map = CountMap()
        #expect(map.position(atCount: .max) == .max)
        map.noteCall(after: 0, size: 3)
        #expect(map.position(atCount: .max) == .max)
        #expect(map.position(atCount: 0) == 0)
        #expect(map.position(atCount: 1) == 3)
    }

    @Test("a map is read as it was stored, and nothing else is one")
    func coding() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<50 {
            let map = Self.grown(&generator, calls: generator.below(40)).map
            let bytes = map.encoded
            #expect(CountMap(encoded: bytes) == map)
            for length in 0..<bytes.count {
                // Cut between two anchors it is a map again, of fewer.
                let cut = CountMap(encoded: Array(bytes[..<length]))
                #expect(cut.map { $0.anchors.count < map.anchors.count } ?? true)
            }
            var other = bytes
            other[generator.below(other.count)] ^= 1 << UInt8(generator.below(8))
            if let read = CountMap(encoded: other) {
                #expect(read != map)
                #expect(read.encoded == other || read.encoded.count < other.count)
            }
        }
        #expect(CountMap(encoded: []) == nil)
        #expect(CountMap(encoded: [2]) == nil)
        #expect(CountMap(encoded: [1, 0, 1, 1]) == nil)
        #expect(CountMap(encoded: [1, 0, 2, 3]) == nil)
        #expect(CountMap(encoded: [1] + [UInt8](repeating: 0xFF, count: 30)) == nil)
    }
}
