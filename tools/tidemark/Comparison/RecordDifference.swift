import Tidemark

/// A record that is not the same in two states.
struct RecordDifference {
    enum Kind: String, CaseIterable {
        case added
        case removed
        case changed

        /// In front of a line, as `diff` has it.
        var mark: String {
            switch self {
            case .added: "+"
            case .removed: "-"
            case .changed: "~"
            }
        }
    }

    /// How the second version came after the first one.
    enum Relation: String {
        case newer
        case older
        case concurrent
        /// One write with two values: one of the two is not what was written.
        case forged
    }

    let dataset: String
    let key: [UInt8]
    /// Live records; nil if there is none.
    let before: Record?
    let after: Record?
    /// False if a version may have been dropped that was the one.
    let isCertain: Bool

    /// nil if nothing that can be read differs: a tombstone and nothing are the same.
    init?(
        dataset: String, key: [UInt8], before: Record?, after: Record?, isCertain: Bool = true
    ) {
        let before = before.flatMap { $0.isDeleted ? nil : $0 }
        let after = after.flatMap { $0.isDeleted ? nil : $0 }
        if let before, let after, before.version.dot == after.version.dot,
            before.value == after.value, before.expiresAt == after.expiresAt
        {
            return nil
        }
        guard before != nil || after != nil else { return nil }
        self.dataset = dataset
        self.key = key
        self.before = before
        self.after = after
        self.isCertain = isCertain
    }

    var kind: Kind { before == nil ? .added : after == nil ? .removed : .changed }

    /// nil unless there are two versions.
    var relation: Relation? {
        guard let before, let after else { return nil }
        switch after.version.relation(to: before.version) {
        case .same: return .forged
        case .descendant: return .newer
        case .ancestor: return .older
        case .concurrent: return .concurrent
        }
    }
}

/// Walks over two states of a dataset at once, in the order of keys, and gives what differs.
final class DifferenceWalk {
    private static let tellingInterval = 1_024

    private let dataset: String
    private let left: RecordCursor?
    private let right: RecordCursor?
    private var first: Record?
    private var second: Record?
    private var bytesRead: UInt64 = 0
    private var stepCount = 0
    private let tell: (UInt64) -> Void

    /// - Parameters:
    ///   - left: nil for a dataset that is not there.
    ///   - tell: called now and then with the bytes of keys and values read since the last call.
    init(
        _ dataset: String, _ left: RecordCursor?, _ right: RecordCursor?,
        tell: @escaping (UInt64) -> Void
    ) throws {
        self.dataset = dataset
        self.left = left
        self.right = right
        self.tell = tell
        try advanceFirst()
        try advanceSecond()
    }

    /// The next difference; nil at the end.
    func next() throws -> RecordDifference? {
        while first != nil || second != nil {
            if let difference = try step() { return difference }
        }
        tell(bytesRead)
        bytesRead = 0
        return nil
    }

    private func step() throws -> RecordDifference? {
        stepCount += 1
        if stepCount % Self.tellingInterval == 0 {
            tell(bytesRead)
            bytesRead = 0
        }
        let (before, after) = (first, second)
        let hasFirst = isFirstNext(before, after)
        let hasSecond = isFirstNext(after, before)
        guard let key = hasFirst ? before?.key : after?.key else { return nil }
        if hasFirst { try advanceFirst() }
        if hasSecond { try advanceSecond() }
        return RecordDifference(
            dataset: dataset, key: key, before: hasFirst ? before : nil,
            after: hasSecond ? after : nil)
    }

    /// Whether a record comes before the other or has its key.
    private func isFirstNext(_ record: Record?, _ other: Record?) -> Bool {
        guard let record else { return false }
        guard let other else { return true }
        return !other.key.lexicographicallyPrecedes(record.key)
    }

    private func advanceFirst() throws {
        first = try left?.next()
        bytesRead += UInt64(first.map { $0.key.count + ($0.value?.count ?? 0) } ?? 0)
    }

    private func advanceSecond() throws {
        second = try right?.next()
        bytesRead += UInt64(second.map { $0.key.count + ($0.value?.count ?? 0) } ?? 0)
    }
}
