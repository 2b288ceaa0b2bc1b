import Tidemark

/// A set of elements that are added and removed. A removal takes away what its maker had seen; an
/// element that another replica adds at the same time stays.
///
/// Removed elements leave nothing behind: beside the elements only one number is kept for each
/// opening of a store that has added to the set, up to which its additions have been seen. An
/// addition that is not in the set but within that number was removed. Bieniusa, Zawirski,
/// Preguiça, Shapiro, Baquero, Balegas, Duarte: "An optimized conflict-free replicated set" (2012).
public struct ObservedRemoveSet: MergeableValue {
    private var birth: HybridTime
    /// For each contributor the number of its additions that have been seen.
    private var seen: [UInt64: UInt64] = [:]
    /// For each element the additions that hold it there: contributor and number.
    private var additions: [[UInt8]: [UInt64: UInt64]] = [:]

    public init(_ turn: MergeTurn) {
        birth = turn.time
    }

    /// In the order of their bytes. O(n log n).
    public var elements: [[UInt8]] { additions.keys.sorted { $0.precedes($1) } }

    public var count: Int { additions.count }

    public func contains(_ element: [UInt8]) -> Bool { additions[element] != nil }

    public func contains(_ element: String) -> Bool { contains(Array(element.utf8)) }

    /// Adds an element, anew if it is there: then a removal that is under way elsewhere does not
    /// take it away.
    ///
    /// - Returns: false, and nothing is changed, if it has more than
    ///   ``MergeableLimits/elementBytesMax`` bytes.
    @discardableResult
    public mutating func insert(_ element: [UInt8], _ turn: MergeTurn) -> Bool {
        guard element.count <= MergeableLimits.elementBytesMax else { return false }
        let contributor = turn.contributor(since: birth)
        let (number, overflow) = (seen[contributor] ?? 0).addingReportingOverflow(1)
        guard !overflow else { return false }
        seen[contributor] = number
        additions[element] = [contributor: number]
        return true
    }

    @discardableResult
    public mutating func insert(_ element: String, _ turn: MergeTurn) -> Bool {
        insert(Array(element.utf8), turn)
    }

    /// - Returns: whether it was there.
    @discardableResult
    public mutating func remove(_ element: [UInt8]) -> Bool {
        additions.removeValue(forKey: element) != nil
    }

    @discardableResult
    public mutating func remove(_ element: String) -> Bool { remove(Array(element.utf8)) }

    public mutating func merge(_ other: ObservedRemoveSet) {
        birth = max(birth, other.birth)
        for element in Set(additions.keys).union(other.additions.keys) {
            let (ours, theirs) = (additions[element] ?? [:], other.additions[element] ?? [:])
            var merged: [UInt64: UInt64] = [:]
            // What both have stays, and what the other has never seen; the rest it has removed.
            for (contributor, number) in ours
            where theirs[contributor] == number || number > other.seen[contributor] ?? 0 {
                merged[contributor] = number
            }
            for (contributor, number) in theirs where number > seen[contributor] ?? 0 {
                merged[contributor] = number
            }
            additions[element] = merged.isEmpty ? nil : merged
        }
        seen.merge(other.seen) { max($0, $1) }
    }
}

extension ObservedRemoveSet {
    public var encoded: [UInt8] {
        var writer = MergeableWriter(.observedRemoveSet)
        writer.put(fixed: birth.rawValue)
        writer.put(seen.count)
        var places: [UInt64: Int] = [:]
        for (contributor, number) in seen.sorted(by: { $0.key < $1.key }) {
            places[contributor] = places.count
            writer.put(fixed: contributor)
            writer.put(number)
        }
        writer.put(additions.count)
        for (element, holders) in additions.sorted(by: { $0.key.precedes($1.key) }) {
            writer.put(element)
            writer.put(holders.count)
            for (contributor, number) in holders.sorted(by: { $0.key < $1.key }) {
                writer.put(places[contributor] ?? 0)
                writer.put(number)
            }
        }
        return writer.bytes
    }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        var reader = try MergeableReader(bytes, .observedRemoveSet)
        birth = try reader.takeTime()
        var contributors: [UInt64] = []
        for _ in 0..<(try reader.takeCount(bytesEach: 9)) {
            let contributor = try reader.takeFixed()
            let number = try reader.takeNumber()
            try reader.check((contributors.last.map { $0 < contributor } ?? true) && number > 0)
            contributors.append(contributor)
            seen[contributor] = number
        }
        var previous: [UInt8]?
        for _ in 0..<(try reader.takeCount(bytesEach: 4)) {
            let element = try reader.takeBytes()
            try reader.check(previous.map { $0.precedes(element) } ?? true)
            additions[element] = try Self.takeHolders(&reader, of: contributors, seen)
            previous = element
        }
        try reader.finish()
    }

    private static func takeHolders(
        _ reader: inout MergeableReader, of contributors: [UInt64], _ seen: [UInt64: UInt64]
    ) throws(MergeableError) -> [UInt64: UInt64] {
        var holders: [UInt64: UInt64] = [:]
        var next = 0
        for _ in 0..<(try reader.takeCount(bytesEach: 2)) {
            let place = try reader.takeNumber()
            try reader.check(place >= UInt64(next) && place < UInt64(contributors.count))
            let contributor = contributors[Int(place)]
            let number = try reader.takeNumber()
            try reader.check((1...(seen[contributor] ?? 1)).contains(number))
            holders[contributor] = number
            next = Int(place) + 1
        }
        try reader.check(!holders.isEmpty)
        return holders
    }
}
