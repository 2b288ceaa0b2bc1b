import Tidemark

/// A key of a dataset, both by number.
struct ModelKey: Hashable, Comparable {
    let dataset: Int
    let number: Int

    static func < (left: ModelKey, right: ModelKey) -> Bool {
        (left.dataset, left.number) < (right.dataset, right.number)
    }
}

/// A write that some replica acknowledged.
struct ModelWrite {
    /// The number that its value carries; deletions have one, too.
    let number: Int
    let key: ModelKey
    let isDeletion: Bool
    let replica: Int
    let version: Version
    /// False as long as what was promised allows it to be lost, and for good once it may be.
    var mustSurvive: Bool
}

/// All that was written, and what of it may not be lost.
struct WriteModel {
    private(set) var writes: [ModelWrite] = []
    /// Numbers of all writes to a key that were tried, of failed ones, too.
    private(set) var tried: [ModelKey: Set<Int>] = [:]
    /// Keys that anybody has tried to delete.
    private(set) var deletedKeys: Set<ModelKey> = []
    private var nextNumber = 1
    /// Indexes of writes that may be lost whatever becomes durable later.
    private var mayGo: Set<Int> = []
    /// Datasets that were deleted at some time: what of them is left depends on who had seen what,
    /// and is for convergence alone to say.
    var deletedDatasets: Set<Int> = []
    /// Once a disk went back in time, lost writes are written anew under new dots.
    var hasRolledBack = false
    /// Once a clock was years ahead, a write need not be later than what it has seen.
    var hasFarClock = false

    /// The number of a write that is about to be tried.
    mutating func begin(_ key: ModelKey, isDeletion: Bool = false) -> Int {
        defer { nextNumber += 1 }
        if isDeletion { deletedKeys.insert(key) }
        tried[key, default: []].insert(nextNumber)
        return nextNumber
    }

    mutating func acknowledge(_ write: ModelWrite) -> Int {
        writes.append(write)
        return writes.count - 1
    }

    mutating func markDurable(_ indexes: [Int]) {
        for index in indexes where !mayGo.contains(index) { writes[index].mustSurvive = true }
    }

    mutating func allowLoss(of index: Int) {
        mayGo.insert(index)
        writes[index].mustSurvive = false
    }

    // MARK: - Values

    /// Four bytes big-endian each: the numbers that a value stands for, then padding of 0xFF.
    static func value(of numbers: some Sequence<Int>, padding: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in numbers {
            for shift in stride(from: 24, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        return bytes + Array(repeating: 0xFF, count: padding)
    }

    static func numbers(in value: [UInt8]) -> [Int] {
        var numbers: [Int] = []
        for start in stride(from: 0, to: value.count - 3, by: 4) where value[start] != 0xFF {
            numbers.append(value[start..<(start + 4)].reduce(0) { $0 << 8 | Int($1) })
        }
        return numbers
    }
}

/// Why a run failed. Shrinking looks for a shorter run that fails for the same kind of reason.
package struct Violation: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable {
        /// Replicas that have exchanged everything hold different things.
        case divergence
        /// An acknowledged write is gone that must not be.
        case lostWrite
        /// A deleted record lives again.
        case resurrection
        /// A value that nobody wrote.
        case inventedValue
        /// A reader saw something older than before, or not its own write.
        case staleRead
        /// One dot names two writes.
        case dotUsedTwice
        /// A store took a new id though its disk never went back.
        case needlessRenewal
        /// A clock was dragged along by somebody else's.
        case clockDragged
        /// A store that cannot be opened, closed, read or written although its disk is well.
        case storeFailure
        /// An exchange failed with an error that nothing explains.
        case syncFailure
        /// Exchanges go on moving records for ever, or one never ends.
        case neverRests
        /// A message is larger than its bounds say.
        case unbounded
        /// Something happened on another thread.
        case leak
    }

    package let kind: Kind
    package let text: String

    package var description: String { "\(kind): \(text)" }
}
