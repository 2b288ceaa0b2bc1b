/// The sum over a stretch of neighbouring keys, which ends where the next leaf begins.
struct SumLeaf: Sendable {
    /// No key of it lies before; the first leaf of a table has none.
    let lowerBound: [UInt8]
    private(set) var sum = RecordsSum()
    /// Tombstones among the records that count.
    private(set) var deletedCount = 0
    /// Tombstones that do not count because they are forgotten.
    private(set) var forgottenCount = 0
    /// The sum holds from then on and before then, in milliseconds since 1970: in between, no
    /// record of it expires.
    private(set) var holdsFrom: UInt64 = 0
    private(set) var holdsBefore = UInt64.max

    init(from lowerBound: [UInt8]) {
        self.lowerBound = lowerBound
    }

    func holds(at now: UInt64) -> Bool {
        now >= holdsFrom && now < holdsBefore
    }

    /// - Parameter now: by which records have expired; nil if the hash does not depend on it.
    mutating func add(_ entry: Entry, _ hash: RecordHash, now: UInt64?) {
        sum.add(hash)
        guard entry.kind == .put else {
            deletedCount += 1
            return
        }
        guard entry.hasExpiry, let now else { return }
        if entry.expiresAt > now {
            holdsBefore = min(holdsBefore, entry.expiresAt)
        } else {
            holdsFrom = max(holdsFrom, entry.expiresAt)
        }
    }

    /// Takes note of a record that does not count now because it has expired.
    mutating func passOver(_ entry: Entry) {
        holdsFrom = max(holdsFrom, entry.expiresAt)
    }

    /// Takes note of a tombstone that does not count because it is forgotten.
    mutating func passOverForgotten() {
        forgottenCount += 1
    }

    /// Both as one.
    ///
    /// - Parameter next: the one that follows.
    mutating func append(_ next: SumLeaf) {
        sum.add(next.sum)
        deletedCount += next.deletedCount
        forgottenCount += next.forgottenCount
        holdsFrom = max(holdsFrom, next.holdsFrom)
        holdsBefore = min(holdsBefore, next.holdsBefore)
    }
}

/// Cuts a run of records, given in the order of their keys, into leaves of equal counts.
struct SumLeafMaker {
    /// Records in a leaf; the last one may have fewer. Doubled whenever there are too many leaves.
    private(set) var recordsMax: Int
    private let leavesMax: Int
    private let now: UInt64?
    private var leaves: [SumLeaf] = []
    /// Of the bounds of all leaves.
    private var boundBytes = 0
    private var current: SumLeaf
    private var lastKey: [UInt8] = []

    /// - Parameter lowerBound: of the first leaf.
    init(from lowerBound: [UInt8], recordsMax: Int, leavesMax: Int = .max, now: UInt64?) {
        self.recordsMax = max(1, recordsMax)
        self.leavesMax = leavesMax
        self.now = now
        current = SumLeaf(from: lowerBound)
    }

    /// - Parameter hash: nil for a record that does not count.
    mutating func add(_ entry: Entry, _ hash: RecordHash?) {
        guard let hash else { return passOver(entry) }
        if current.sum.count >= recordsMax { endLeaf(before: entry.key) }
        current.add(entry, hash, now: now)
        if current.sum.count == recordsMax { lastKey = entry.key.array }
    }

    private mutating func passOver(_ entry: Entry) {
        if now == nil {
            // Of versions, every value counts.
            current.passOverForgotten()
        } else {
            guard entry.kind == .put, entry.hasExpiry else { return }
            current.passOver(entry)
        }
        // It was noted in this leaf, so the next one begins behind it.
        if current.sum.count >= recordsMax { lastKey = entry.key.array }
    }

    private mutating func endLeaf(before key: ByteView) {
        leaves.append(current)
        boundBytes += current.lowerBound.count
        current = SumLeaf(from: separator(before: key))
        let isTooMuch = leaves.count >= leavesMax || boundBytes > Self.boundBytesMax
        if isTooMuch, leavesMax < .max, leaves.count > 1 { halve() }
    }

    /// Where keys are long and alike, bounds are.
    private static let boundBytesMax = 2 << 20

    /// The shortest bytes between the last key, that one excluded, and the next one.
    private func separator(before key: ByteView) -> [UInt8] {
        let common = unsafe lastKey.withUnsafeBytes {
            unsafe key.commonPrefixCount(with: ByteView($0), max: key.count)
        }
        return Array(key.array.prefix(common + 1))
    }

    /// Makes one leaf of each two.
    private mutating func halve() {
        var halved: [SumLeaf] = []
        halved.reserveCapacity(leaves.count / 2 + 1)
        for (index, leaf) in leaves.enumerated() {
            if index % 2 == 0 {
                halved.append(leaf)
            } else {
                halved[halved.count - 1].append(leaf)
            }
        }
        leaves = halved
        boundBytes = leaves.reduce(0) { $0 + $1.lowerBound.count }
        recordsMax *= 2
    }

    /// All leaves. Only the one that begins a dataset may be empty: in place of any other the one
    /// before it reaches further.
    mutating func finish() -> [SumLeaf] {
        let isNeeded =
            current.sum.count > 0 || current.holdsFrom > 0 || current.forgottenCount > 0
        if isNeeded || current.lowerBound.isEmpty { leaves.append(current) }
        return leaves
    }
}
