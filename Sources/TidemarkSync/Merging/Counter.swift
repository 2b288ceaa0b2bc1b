import Tidemark

/// A number that many replicas add to and subtract from at once: the sum of what each has done.
///
/// ```swift
/// try stock.update("17", as: Counter.self) { pieces, turn in pieces.add(-1, turn) }
/// ```
///
/// It keeps no bound: two replicas that each take the last piece go below 0.
///
/// Each opening of a store that changes it adds an entry of 10 bytes or more (see ``MergeTurn``);
/// what was added and what was subtracted are kept apart, and each only ever grows (a PN-counter).
public struct Counter: MergeableValue {
    private struct Share: Hashable {
        var added: UInt64 = 0
        var subtracted: UInt64 = 0
    }

    private var birth: HybridTime
    private var shares: [UInt64: Share] = [:]

    public init(_ turn: MergeTurn) {
        birth = turn.time
    }

    /// The sum; at the ends of `Int` it stays there. O(entries).
    public var value: Int {
        // Less than 2^20 entries fit, and of 64 bits each they are far from the end of 128.
        let sum = shares.values.reduce(Int128(0)) {
            $0 + Int128($1.added) - Int128($1.subtracted)
        }
        return Int(clamping: sum)
    }

    /// Adds, or with a negative number subtracts. One contributor's share ends at 2^64 - 1.
    public mutating func add(_ amount: Int, _ turn: MergeTurn) {
        guard amount != 0 else { return }
        let contributor = turn.contributor(since: birth)
        var share = shares[contributor] ?? Share()
        if amount > 0 {
            share.added = share.added.addingClamped(amount.magnitude)
        } else {
            share.subtracted = share.subtracted.addingClamped(amount.magnitude)
        }
        shares[contributor] = share
    }

    public mutating func merge(_ other: Counter) {
        birth = max(birth, other.birth)
        shares.merge(other.shares) { ours, theirs in
            Share(
                added: max(ours.added, theirs.added),
                subtracted: max(ours.subtracted, theirs.subtracted))
        }
    }
}

extension Counter {
    public var encoded: [UInt8] {
        var writer = MergeableWriter(.counter)
        writer.put(fixed: birth.rawValue)
        writer.put(shares.count)
        for (contributor, share) in shares.sorted(by: { $0.key < $1.key }) {
            writer.put(fixed: contributor)
            writer.put(share.added)
            writer.put(share.subtracted)
        }
        return writer.bytes
    }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        var reader = try MergeableReader(bytes, .counter)
        birth = try reader.takeTime()
        let count = try reader.takeCount(bytesEach: 10)
        shares.reserveCapacity(count)
        var previous: UInt64?
        for _ in 0..<count {
            let contributor = try reader.takeFixed()
            let share = Share(added: try reader.takeNumber(), subtracted: try reader.takeNumber())
            let isInOrder = previous.map { $0 < contributor } ?? true
            try reader.check(isInOrder && share != Share())
            shares[contributor] = share
            previous = contributor
        }
        try reader.finish()
    }
}

extension UInt64 {
    fileprivate func addingClamped(_ amount: UInt) -> UInt64 {
        let (sum, overflow) = addingReportingOverflow(UInt64(amount))
        return overflow ? .max : sum
    }
}
