import Testing
import Tidemark

@testable import TidemarkSync

/// What the laws speak of: a value that random changes are made to.
protocol RandomlyChanged: MergeableValue {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON)
}

/// Merging is a join, for every kind of value: commutative, associative, idempotent, and never less
/// than what went in. Bytes are the value, and other bytes are refused.
struct MergeableLawTests {
    /// A few openings, so that the same one meets itself in older and newer states.
    private static func turn(_ json: inout RandomJSON, at time: UInt64) -> MergeTurn {
        MergeTurn(opening: UInt64(json.below(3)), time: HybridTime(rawValue: time))
    }

    /// States as they come to be: each replica changes its own and takes in those of others.
    private static func states<Value: RandomlyChanged>(
        _ type: Value.Type, _ json: inout RandomJSON
    ) -> [Value] {
        var time: UInt64 = 1
        var states = (0..<3).map { opening in
            Value(MergeTurn(opening: UInt64(opening), time: HybridTime(rawValue: 1)))
        }
        var all: [Value] = []
        for _ in 0..<json.below(20) {
            time += 1
            let index = json.below(3)
            if json.below(3) == 0 {
                states[index].merge(states[json.below(3)])
            } else {
                let turn = MergeTurn(opening: UInt64(index), time: HybridTime(rawValue: time))
                states[index].change(turn, &json)
            }
            all.append(states[index])
        }
        return states + all.suffix(json.below(all.count + 1))
    }

    private func checkLaws<Value: RandomlyChanged>(of type: Value.Type) throws {
        print("checkLaws of \(type): seeds from \(baseSeed)")
        for seed in baseSeed..<baseSeed + 400 {
            var json = RandomJSON(seed: seed)
            let states = Self.states(type, &json)
            let (a, b, c) = (
                states[json.below(states.count)], states[json.below(states.count)],
                states[json.below(states.count)]
            )
            func merged(_ left: Value, _ right: Value) -> Value {
                var result = left
                result.merge(right)
                return result
            }
            #expect(merged(a, b) == merged(b, a), "seed \(seed)")
            #expect(merged(merged(a, b), c) == merged(a, merged(b, c)), "seed \(seed)")
            #expect(merged(a, a) == a, "seed \(seed)")
            // A join is the least state that has both, so to take in either again adds nothing.
            #expect(merged(merged(a, b), a) == merged(a, b), "seed \(seed)")
            #expect(merged(a, b).encoded == merged(b, a).encoded, "seed \(seed)")
            for state in [a, b, c, merged(a, b)] {
                let back = try Value(decoding: state.encoded)
                #expect(back == state, "seed \(seed)")
                #expect(back.encoded == state.encoded, "seed \(seed)")
            }
            let bytes = try MergeableKind.merged(a.encoded, b.encoded)
            #expect(bytes == merged(a, b).encoded, "seed \(seed)")
        }
    }

    @Test func laws() throws {
        try checkLaws(of: Counter.self)
        try checkLaws(of: GrowOnlySet.self)
        try checkLaws(of: ObservedRemoveSet.self)
        try checkLaws(of: Maximum<Int>.self)
        try checkLaws(of: Minimum<String>.self)
        try checkLaws(of: RegisterMap.self)
    }

    /// Whatever bytes come, they are refused or they are a value whose bytes they are.
    private func checkHostileBytes<Value: RandomlyChanged>(of type: Value.Type) {
        var refusedCount = 0
        for seed in baseSeed..<baseSeed + 400 {
            var json = RandomJSON(seed: seed)
            let states = Self.states(type, &json)
            let bytes = states[json.below(states.count)].encoded
            for length in 0..<bytes.count {
                #expect(throws: MergeableError.self, "seed \(seed), \(length)") {
                    try Value(decoding: Array(bytes.prefix(length)))
                }
            }
            #expect(throws: MergeableError.self, "seed \(seed)") {
                try Value(decoding: bytes + [0])
            }
            var damaged = bytes
            for _ in 0..<1 + json.below(3) {
                damaged[json.below(damaged.count)] = UInt8(json.below(256))
            }
            guard let value = try? Value(decoding: damaged) else {
                refusedCount += 1
                continue
            }
            #expect(value.encoded == damaged, "seed \(seed)")
            var other = states[0]
            other.merge(value)
            let turn = Self.turn(&json, at: 1_000)
            other.change(turn, &json)
            #expect((try? Value(decoding: other.encoded)) == other, "seed \(seed)")
        }
        #expect(refusedCount > 50, "\(type)")
    }

    @Test func hostileBytes() {
        print("hostileBytes: seeds from \(baseSeed)")
        checkHostileBytes(of: Counter.self)
        checkHostileBytes(of: GrowOnlySet.self)
        checkHostileBytes(of: ObservedRemoveSet.self)
        checkHostileBytes(of: Maximum<Int>.self)
        checkHostileBytes(of: Minimum<String>.self)
        checkHostileBytes(of: RegisterMap.self)
    }

    @Test func lengthsAreBoundedBeforeMemoryIsTaken() {
        let huge: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]
        for kind in MergeableKind.allCases {
            let header = [MergeableKind.mark, kind.rawValue, MergeableKind.version]
            for middle in [[], [1], [UInt8](repeating: 0, count: 8)] {
                let bytes = header + middle + huge
                #expect(throws: MergeableError.self) {
                    try MergeableKind.merged(bytes, bytes)
                }
            }
        }
        let tooLong = [UInt8](repeating: 0xF7, count: MergeableLimits.bytesMax + 1)
        #expect(throws: MergeableError.self) { try Counter(decoding: tooLong) }
    }

    /// Stored bytes never change their meaning.
    @Test func bytesAreFrozen() throws {
        let turn = MergeTurn(opening: 7, time: HybridTime(rawValue: 5))
        var counter = Counter(turn)
        counter.add(300, turn)
        counter.add(-2, turn)
        let contributor = turn.contributor(since: HybridTime(rawValue: 5))
        let eight = (0..<8).map { UInt8(truncatingIfNeeded: contributor >> UInt64(8 * $0)) }
        #expect(
            counter.encoded == [0xF7, 1, 1] + [5, 0, 0, 0, 0, 0, 0, 0] + [1] + eight
                + [0xAC, 2, 2])
        #expect(contributor == 0x6303_3B0C_A389_C35D)
        var grown = GrowOnlySet(turn)
        grown.insert("b")
        grown.insert("a")
        #expect(grown.encoded == [0xF7, 2, 1, 2, 1, 97, 1, 98])
        var set = ObservedRemoveSet(turn)
        set.insert("b", turn)
        set.insert("a", turn)
        set.remove("b")
        #expect(
            set.encoded == [0xF7, 3, 1] + [5, 0, 0, 0, 0, 0, 0, 0] + [1] + eight + [2]
                + [1, 1, 97, 1, 0, 2])
        var best = Maximum<UInt16>(turn)
        #expect(best.encoded == [0xF7, 4, 1, 0])
        best.offer(258)
        #expect(best.encoded == [0xF7, 4, 1, 1, 2, 1, 2])
        var least = Minimum<String>(turn)
        least.offer("b")
        #expect(least.encoded == [0xF7, 5, 1, 1, 1, 98])
        var map = RegisterMap(turn)
        map.set("v", for: "n", turn)
        map.remove("n", turn)
        #expect(
            map.encoded == [0xF7, 6, 1, 1, 1, 110] + [6, 0, 0, 0, 0, 0, 0, 0]
                + [7, 0, 0, 0, 0, 0, 0, 0] + [0])
    }

    @Test func numbersEndAtTheirEnds() throws {
        let turn = MergeTurn(opening: 1, time: HybridTime(rawValue: 1))
        var counter = Counter(turn)
        for _ in 0..<3 { counter.add(.max, turn) }
        #expect(counter.value == .max)
        counter.add(.min, turn)
        for _ in 0..<3 { counter.add(.min, turn) }
        #expect(counter.value == 0)
        counter = Counter(turn)
        counter.add(.min, turn)
        counter.add(-1, turn)
        #expect(counter.value == .min)
        // A time at the end of all times: what is written after it still takes its place.
        var map = RegisterMap(turn)
        let end = MergeTurn(opening: 1, time: .greatest)
        map.set("first", for: "n", end)
        map.set("second", for: "n", end)
        #expect(map.text("n") == "second")
        #expect(try RegisterMap(decoding: map.encoded) == map)
    }

    @Test func elementsAreBounded() {
        let turn = MergeTurn(opening: 1, time: HybridTime(rawValue: 1))
        let most = [UInt8](repeating: 1, count: MergeableLimits.elementBytesMax)
        var (grown, set, map) = (GrowOnlySet(turn), ObservedRemoveSet(turn), RegisterMap(turn))
        var best = Maximum<[UInt8]>(turn)
        #expect(grown.insert(most) && set.insert(most, turn) && map.set(most, for: most, turn))
        best.offer(most)
        #expect(!grown.insert(most + [1]) && !set.insert(most + [1], turn))
        #expect(!map.set(most + [1], for: [], turn) && !map.set([], for: most + [1], turn))
        best.offer(most + [1])
        #expect(best.value == most)
        #expect(grown.count == 1 && set.count == 1 && map.names == [most])
    }
}

extension Counter: RandomlyChanged {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON) {
        add(json.below(2_000) - 1_000, turn)
    }
}

extension GrowOnlySet: RandomlyChanged {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON) {
        insert(json.text())
    }
}

extension ObservedRemoveSet: RandomlyChanged {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON) {
        if json.below(3) == 0 { remove(json.text()) } else { insert(json.text(), turn) }
    }
}

extension Maximum<Int>: RandomlyChanged {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON) {
        offer(json.below(100) - 50)
    }
}

extension Minimum<String>: RandomlyChanged {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON) {
        offer(json.text())
    }
}

extension RegisterMap: RandomlyChanged {
    mutating func change(_ turn: MergeTurn, _ json: inout RandomJSON) {
        if json.below(4) == 0 {
            remove(json.text(), turn)
        } else {
            set(json.text(), for: json.text(), turn)
        }
    }
}
