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
    /// Numbers of writes to the key that it counts as having seen, and that its writer could not
    /// read.
    var unread: Set<Int> = []
    /// In milliseconds since 1970; nil if it does not expire.
    var expiresAt: UInt64?
}

/// All that was written, and what of it may not be lost.
struct WriteModel {
    private(set) var writes: [ModelWrite] = []
    /// Numbers of all writes to a key that were tried, of failed ones, too.
    private(set) var tried: [ModelKey: Set<Int>] = [:]
    /// Keys that anybody has tried to delete, or to put so that they expire.
    private(set) var deletedKeys: Set<ModelKey> = []
    private var nextNumber = 1
    /// Indexes of writes that may be lost whatever becomes durable later.
    private var mayGo: Set<Int> = []
    /// Numbers of writes that may be lost since another one, with which they met without a policy,
    /// is dated later.
    private var lostByDate: Set<Int> = []
    /// By the numbers of writes of which nobody has heard whether they were done, the numbers of
    /// what their writers could not read: those that were done have overwritten it.
    private var unreadByUnheard: [Int: Set<Int>] = [:]
    /// What any replica ever had under a key, by its dot.
    private(set) var handedOver: [ModelKey: [Dot: Set<Int>]] = [:]
    /// Datasets that were deleted at some time: what of them is left depends on who had seen what,
    /// and is for convergence alone to say.
    var deletedDatasets: Set<Int> = []
    /// Once a disk went back in time, lost writes are written anew under new dots.
    var hasRolledBack = false
    /// Ids of stores whose files were copied: others have writes of theirs that they never met.
    var copiedIDs: Set<ReplicaID> = []
    /// Keys of which a store has forgotten a deletion while nobody else had a part in the dataset.
    var forgottenAlone: Set<ModelKey> = []
    /// Ids that a store has given up.
    private var givenUpIDs: Set<ReplicaID> = []
    /// Once a clock was further ahead than the others believe, a write need not be later than what
    /// it has seen, and which write must stand is not for dates to say.
    var hasFarClock = false
    /// Deletions that were tried, by their number.
    private(set) var triedDeletions: [ModelKey: Set<Int>] = [:]

    /// The number of a write that is about to be tried.
    mutating func begin(
        _ key: ModelKey, isDeletion: Bool = false, expires: Bool = false
    ) -> Int {
        defer { nextNumber += 1 }
        if expires { deletedKeys.insert(key) }
        if isDeletion {
            deletedKeys.insert(key)
            triedDeletions[key, default: []].insert(nextNumber)
        }
        tried[key, default: []].insert(nextNumber)
        return nextNumber
    }

    mutating func acknowledge(_ write: ModelWrite) -> Int {
        writes.append(write)
        return writes.count - 1
    }

    /// Notes that nobody has heard whether a write was done.
    ///
    /// - Parameter unread: the numbers of what it counts as having seen, and its writer could not
    ///   read.
    mutating func noteUnheard(_ number: Int, beside unread: Set<Int>) {
        if !unread.isEmpty { unreadByUnheard[number] = unread }
    }

    mutating func noteHandedOver(_ numbers: [Int], as dot: Dot, under key: ModelKey) {
        handedOver[key, default: [:]][dot, default: []].formUnion(numbers)
    }

    mutating func markDurable(_ indexes: [Int]) {
        for index in indexes where !mayGo.contains(index) { writes[index].mustSurvive = true }
    }

    mutating func allowLoss(of index: Int) {
        mayGo.insert(index)
        writes[index].mustSurvive = false
    }

    /// Allows the loss of all writes to a key that have these numbers, since they have lost by
    /// their date.
    mutating func allowLossByDate(of numbers: Set<Int>, under key: ModelKey) {
        for (index, write) in writes.enumerated()
        where write.key == key && numbers.contains(write.number) {
            lostByDate.insert(write.number)
            allowLoss(of: index)
        }
    }

    /// Whether one of the writes that stand, or that have lost by their date, has overwritten
    /// another one unread; maybe by way of what it has overwritten so.
    func isOverwrittenUnread(_ write: ModelWrite, by standing: Set<Int>) -> Bool {
        let isUnheard = unreadByUnheard.contains { number, unread in
            unread.contains(write.number) && standing.contains(number)
        }
        if isUnheard { return true }
        return writes.contains { later in
            // Numbers rise, so that this ends. Of two datasets one may have gone into the other.
            later.key.number == write.key.number && later.number > write.number
                && later.unread.contains(write.number)
                && (standing.contains(later.number) || lostByDate.contains(later.number)
                    || isOverwrittenUnread(later, by: standing))
        }
    }

    // MARK: - Ids that name two lines of writes

    /// Its store has taken another one.
    mutating func noteFoundOut(_ id: ReplicaID) {
        givenUpIDs.insert(id)
    }

    /// Whether some store has taken another one because this one named two lines of writes.
    func isGivenUp(_ id: ReplicaID) -> Bool { givenUpIDs.contains(id) }

    // MARK: - Values

    /// A value that stands for these numbers, in rising order, and is longer by the padding.
    static func value(
        of numbers: some Sequence<Int>, padding: Int, _ form: ValueForm = .numbers
    ) -> [UInt8] {
        switch form {
        case .numbers:
            // Four bytes big-endian each, then padding of 0xFF.
            let bytes = numbers.flatMap { fourBytes($0) }
            return bytes + Array(repeating: 0xFF, count: padding)
        case .document:
            let all = Array(numbers)
            let list = all.map { "\($0)" }.joined(separator: ",")
            let rest = String(repeating: "x", count: padding)
            let mark = (all.last ?? 0) % 3
            return Array("{\"c\":\(mark),\"n\":[\(list)],\"p\":\"\(rest)\"}".utf8)
        case .set:
            // As the store's own set that only grows, byte by byte.
            let all = Array(numbers)
            var bytes: [UInt8] = [0xF7, 2, 1]
            appendVarint(all.count, to: &bytes)
            for number in all { bytes += [4] + fourBytes(number) }
            return bytes
        }
    }

    private static func fourBytes(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    private static func appendVarint(_ number: Int, to bytes: inout [UInt8]) {
        var rest = number
        while rest > 0x7F {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// The numbers of a value in any form.
    static func numbers(in value: [UInt8]) -> [Int] {
        let first = value.first ?? 0
        switch first {
        case UInt8(ascii: "{"): return listed(in: value)
        // No number begins so: it would be one of billions.
        case 0xF7: return fours(in: value, from: skipVarint(in: value, at: 3) + 1, every: 5)
        default: return fours(in: value, from: 0, every: 4)
        }
    }

    private static func skipVarint(in value: [UInt8], at start: Int) -> Int {
        var index = start
        while index < value.count, value[index] > 0x7F { index += 1 }
        return index + 1
    }

    private static func fours(in value: [UInt8], from first: Int, every step: Int) -> [Int] {
        var numbers: [Int] = []
        for start in stride(from: first, through: value.count - 4, by: step)
        where value[start] != 0xFF {
            numbers.append(value[start..<(start + 4)].reduce(0) { $0 << 8 | Int($1) })
        }
        return numbers
    }

    private static func listed(in value: [UInt8]) -> [Int] {
        guard let start = value.firstIndex(of: UInt8(ascii: "[")),
            let end = value.firstIndex(of: UInt8(ascii: "]")), start < end
        else { return [] }
        return value[(start + 1)..<end].split(separator: UInt8(ascii: ",")).compactMap {
            Int(String(decoding: $0, as: UTF8.self))
        }
    }

    /// The field of a document by which parts are chosen; nil if the value is none.
    static func mark(in value: [UInt8]) -> Int? {
        guard value.first == UInt8(ascii: "{") else { return nil }
        let name = Array("\"c\":".utf8)
        for start in value.indices where value[start...].starts(with: name) {
            guard start + name.count < value.count else { return nil }
            return Int(value[start + name.count]) - Int(UInt8(ascii: "0"))
        }
        return nil
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
        /// A message is larger than its bounds say, or has more records.
        case unbounded
        /// Something happened on another thread.
        case leak
        /// A write of somebody else counts here before its date is believed.
        case futureWins
        /// An outcome of a conflict is there, and the journal knows nothing of it.
        case unjournalled
        /// A moment of the past does not hold what it held.
        case pastChanged
    }

    package let kind: Kind
    package let text: String

    package var description: String { "\(kind): \(text)" }
}
