/// The three-way merge of lists.
///
/// Elements have no identity but their value, so a list is taken as a number of pieces of each
/// value, in an order. Of each value:
/// - those pieces of the ancestor stay that neither side has removed;
/// - what the sides added is added, and what both added is the same addition, once.
///
/// With the counts `a`, `e` and `l` of a value in ancestor, earlier and later, `min(a, e, l)` stay
/// and `max(e - a, l - a, 0)` are added. Merging a list with itself gives the list; merging with
/// the unchanged ancestor gives the other side.
///
/// The order is that of one side, the *spine*: the earlier one, unless only the later one moved
/// what was there before. Additions of the other side come behind the piece that they stood
/// behind, after the spine's own additions there. Not `diff3`, which goes by position and leaves
/// a conflict to people where edits adjoin (Khanna, Kunal, Pierce: "A Formal Investigation of
/// Diff3", 2007): nobody may be at hand here.
struct ListMerge {
    /// The merged list.
    let elements: [JSONValue]
    /// Whether both moved what was there before, so that the later one's order is lost.
    let losesOrder: Bool

    /// O(elements).
    init(ancestor: [JSONValue], earlier: [JSONValue], later: [JSONValue]) {
        var numbers: [JSONValue: Int] = [:]
        func numbered(_ list: [JSONValue]) -> [Int] {
            list.map { element in
                let number = numbers[element] ?? numbers.count
                numbers[element] = number
                return number
            }
        }
        let lists = [numbered(ancestor), numbered(earlier), numbered(later)]
        var counts = lists.map { _ in [Int](repeating: 0, count: numbers.count) }
        for (index, list) in lists.enumerated() {
            for number in list { counts[index][number] += 1 }
        }
        let kept = numbers.values.sorted().map { number in
            min(counts[0][number], counts[1][number], counts[2][number])
        }
        let before = Self.pieces(of: lists[0], kept: kept, ancestors: counts[0])
        let first = Self.pieces(of: lists[1], kept: kept, ancestors: counts[0])
        let second = Self.pieces(of: lists[2], kept: kept, ancestors: counts[0])
        let order = before.compactMap(\.anchor)
        let firstOrder = first.compactMap(\.anchor)
        let secondOrder = second.compactMap(\.anchor)
        losesOrder =
            firstOrder != order && secondOrder != order && firstOrder != secondOrder
        if firstOrder == order, secondOrder != order {
            elements = Self.woven(spine: second, later, other: first, earlier)
        } else {
            elements = Self.woven(spine: first, earlier, other: second, later)
        }
    }

    /// A piece of the ancestor that stays: the n-th of its value.
    private struct Anchor: Hashable {
        let number: Int
        let repetition: Int
    }

    private struct Piece {
        let number: Int
        /// Its place in its own list.
        let index: Int
        /// nil if it is an addition.
        let anchor: Anchor?
    }

    /// The list without what the other side removed.
    private static func pieces(
        of list: [Int], kept: [Int], ancestors: [Int]
    ) -> [Piece] {
        var met = [Int](repeating: 0, count: kept.count)
        return list.enumerated().compactMap { index, number in
            defer { met[number] += 1 }
            if met[number] < kept[number] {
                let anchor = Anchor(number: number, repetition: met[number])
                return Piece(number: number, index: index, anchor: anchor)
            }
            let isRemoved = met[number] < ancestors[number]
            return isRemoved ? nil : Piece(number: number, index: index, anchor: nil)
        }
    }

    private static func woven(
        spine: [Piece], _ spineList: [JSONValue], other: [Piece], _ otherList: [JSONValue]
    ) -> [JSONValue] {
        // What both added is there once: it is the spine's.
        var shared: [Int: Int] = [:]
        for piece in spine where piece.anchor == nil { shared[piece.number, default: 0] += 1 }
        var inserted: [Anchor?: [JSONValue]] = [:]
        var place: Anchor?
        for piece in other {
            if let anchor = piece.anchor {
                place = anchor
            } else if let count = shared[piece.number], count > 0 {
                shared[piece.number] = count - 1
            } else {
                inserted[place, default: []].append(otherList[piece.index])
            }
        }
        var result: [JSONValue] = []
        place = nil
        for piece in spine {
            if let anchor = piece.anchor {
                result += inserted[place] ?? []
                place = anchor
            }
            result.append(spineList[piece.index])
        }
        return result + (inserted[place] ?? [])
    }
}
