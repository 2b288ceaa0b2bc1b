import Testing

@testable import TidemarkSync

/// What holds of three-way merges whatever the documents are.
struct AutoMergePropertyTests {
    private func merged(
        _ ancestor: JSONValue?, _ earlier: JSONValue, _ later: JSONValue
    ) -> (value: JSONValue?, lostCount: Int) {
        var merge = JSONMerge(sets: [], earlierSide: .local)
        let value = merge.merge(ancestor, earlier, later)
        return (value, merge.notes.lostCount)
    }

    /// Every leaf is changed, removed or added by one side at most: then nothing is lost, and the
    /// outcome is what one writer would have made who did it all.
    @Test func noOneSidedChangeIsLost() {
        print("noOneSidedChangeIsLost: seeds from \(baseSeed)")
        for seed in baseSeed..<baseSeed + 2_000 {
            var json = RandomJSON(seed: seed)
            var (base, earlier, later, all) = (
                JSONObject(), JSONObject(), JSONObject(), JSONObject()
            )
            for outer in 0..<json.below(5) {
                var parts = [JSONObject(), JSONObject(), JSONObject(), JSONObject()]
                for inner in 0..<json.below(6) {
                    let before = json.below(4) == 0 ? nil : Optional(json.value(depth: 2))
                    let after = json.below(4) == 0 ? nil : Optional(json.value(depth: 2))
                    let who = json.below(3)
                    for (index, hasChanged) in [false, who == 1, who == 2, who > 0].enumerated() {
                        parts[index]["\(inner)"] = hasChanged ? after : before
                    }
                }
                let name = "\(outer)"
                base[name] = .object(parts[0])
                earlier[name] = .object(parts[1])
                later[name] = .object(parts[2])
                all[name] = .object(parts[3])
            }
            let result = merged(.object(base), .object(earlier), .object(later))
            #expect(result.value == .object(all), "seed \(seed)")
            #expect(result.lostCount == 0, "seed \(seed)")
        }
    }

    @Test func theUnchangedSideYields() {
        print("theUnchangedSideYields: seeds from \(baseSeed)")
        for seed in baseSeed..<baseSeed + 2_000 {
            var json = RandomJSON(seed: seed)
            let (one, two) = (json.value(), json.value())
            for result in [merged(one, one, two), merged(one, two, one), merged(one, two, two)] {
                #expect(result.value == two, "seed \(seed)")
                #expect(result.lostCount == 0, "seed \(seed)")
            }
        }
    }

    /// A list of which some elements are removed, some moved and some added.
    private func edited(
        _ list: [JSONValue], _ json: inout RandomJSON, moves: Bool
    ) -> [JSONValue] {
        var result = list.filter { _ in json.below(4) > 0 }
        if moves, result.count > 1 {
            result.swapAt(json.below(result.count), json.below(result.count))
        }
        for _ in 0..<json.below(4) {
            let element = JSONValue(integerLiteral: json.below(6))
            result.insert(element, at: json.below(result.count + 1))
        }
        return result
    }

    private func counts(_ list: [JSONValue]) -> [JSONValue: Int] {
        list.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    @Test func listsNeitherDoubleNorLose() {
        print("listsNeitherDoubleNorLose: seeds from \(baseSeed)")
        var moves = 0
        for seed in baseSeed..<baseSeed + 5_000 {
            var json = RandomJSON(seed: seed)
            let base = (0..<json.below(7)).map { _ in JSONValue(integerLiteral: json.below(6)) }
            let earlier = edited(base, &json, moves: json.below(3) == 0)
            let later = edited(base, &json, moves: json.below(3) == 0)
            let merge = ListMerge(ancestor: base, earlier: earlier, later: later)
            let result = counts(merge.elements)
            let (a, e, l) = (counts(base), counts(earlier), counts(later))
            for value in Set(base + earlier + later) {
                let (a, e, l) = (a[value] ?? 0, e[value] ?? 0, l[value] ?? 0)
                #expect(
                    result[value] ?? 0 == min(a, e, l) + max(e - a, l - a, 0),
                    "seed \(seed), \(value)")
            }
            moves += merge.losesOrder ? 1 : 0
            // One side alone is taken as it is, order and all, and nothing can be merged twice.
            #expect(ListMerge(ancestor: base, earlier: earlier, later: base).elements == earlier)
            #expect(ListMerge(ancestor: base, earlier: base, later: later).elements == later)
            #expect(ListMerge(ancestor: base, earlier: later, later: later).elements == later)
        }
        #expect(moves > 10)
    }

    /// What nobody moved stays in its order: of pieces that are all different it can be told.
    @Test func theOrderOfOneSideStays() {
        print("theOrderOfOneSideStays: seeds from \(baseSeed)")
        for seed in baseSeed..<baseSeed + 2_000 {
            var json = RandomJSON(seed: seed)
            let base = (0..<json.below(9)).map { JSONValue(integerLiteral: $0) }
            var lists: [[JSONValue]] = []
            for side in 1...2 {
                var list = base.filter { _ in json.below(4) > 0 }
                for number in 0..<json.below(4) {
                    list.insert(
                        JSONValue(integerLiteral: 100 * side + number),
                        at: json.below(list.count + 1))
                }
                lists.append(list)
            }
            let merge = ListMerge(ancestor: base, earlier: lists[0], later: lists[1])
            #expect(!merge.losesOrder, "seed \(seed)")
            for list in lists {
                let kept = list.filter { merge.elements.contains($0) }
                #expect(merge.elements.filter { list.contains($0) } == kept, "seed \(seed)")
            }
        }
    }

    /// Whoever asks, and under whichever rules, both come to the same bytes.
    @Test func bothSidesComeToTheSameBytes() {
        print("bothSidesComeToTheSameBytes: seeds from \(baseSeed)")
        let all: [AutoMerge] = [
            AutoMerge(), AutoMerge(rules: .appSync(server: .earlier)),
            AutoMerge(rules: .appSync(server: .later), sets: [[], ["a"], ["b", "é"]]),
        ]
        for seed in baseSeed..<baseSeed + 1_000 {
            var json = RandomJSON(seed: seed)
            let texts = (0..<3).map { _ in
                json.below(6) == 0 ? nil : Optional(json.value(depth: 4).description)
            }
            let conflict = AutoMergeTests.conflict(texts[0], texts[1], texts[2])
            for rules in all {
                _ = AutoMergeTests.merged(rules, conflict)
            }
        }
    }
}
