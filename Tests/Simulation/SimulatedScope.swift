import Tidemark
import TidemarkSync

/// One of the parts of a dataset that a run may keep, with an evaluation of its own that owes
/// nothing to the store's.
package struct SimulatedScope: Hashable, Sendable, CustomStringConvertible {
    package static let count = 6

    /// 0..<``count``.
    package let number: Int

    package init(number: Int) {
        self.number = number
    }

    /// All parts, to find out which one a store says that it keeps.
    static let all = (0..<count).map { SimulatedScope(number: $0) }

    /// What the store is told.
    var scope: SyncScope {
        let first = SyncScope.keys(in: KeyRange(from: "k0", upTo: "k2"))
        let ones = SyncScope.prefix("k1")
        let field = JSONPath(["c"])
        switch number {
        case 0: return ones
        case 1: return first
        case 2: return SyncScope.field(field, .equals(0))
        case 3:
            let isOne = SyncScope.field(field, .equals(1))
            return ones && !isOne
        case 4:
            let isGreat = SyncScope.field(field, .isAtLeast(2))
            return !first || isGreat
        default: return SyncScope.nothing
        }
    }

    package var description: String {
        switch number {
        case 0: "k1..."
        case 1: "k0..<k2"
        case 2: "c = 0"
        case 3: "k1... and not c = 1"
        case 4: "not k0..<k2, or c >= 2"
        default: "nothing"
        }
    }

    /// Whether a key is in it whatever its value; nil if the value says.
    func decides(_ key: Int) -> Bool? {
        let name = "k\(key)"
        let isFirst = name.hasPrefix("k0") || name.hasPrefix("k1")
        switch number {
        case 0: return name.hasPrefix("k1")
        case 1: return isFirst
        case 2: return nil
        case 3: return name.hasPrefix("k1") ? nil : false
        case 4: return isFirst ? nil : true
        default: return false
        }
    }

    /// Whether a record with a value is in it.
    func keeps(_ key: Int, _ value: [UInt8]) -> Bool {
        if let known = decides(key) { return known }
        let mark = WriteModel.mark(in: value)
        switch number {
        case 2: return mark == 0
        case 3: return mark != 1
        default: return mark.map { $0 >= 2 } ?? false
        }
    }
}
