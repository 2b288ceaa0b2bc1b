/// A set of elements that are added and never removed. The merge is the union.
///
/// The smallest of the sets: nothing is kept but the elements. If elements are ever to go, take an
/// ``ObservedRemoveSet``.
public struct GrowOnlySet: MergeableValue {
    private var all: Set<[UInt8]> = []

    public init(_ turn: MergeTurn) {}

    /// In the order of their bytes. O(n log n).
    public var elements: [[UInt8]] { all.sorted { $0.precedes($1) } }

    public var count: Int { all.count }

    public func contains(_ element: [UInt8]) -> Bool { all.contains(element) }

    public func contains(_ element: String) -> Bool { contains(Array(element.utf8)) }

    /// - Returns: false, and nothing is changed, if the element is there already or has more than
    ///   ``MergeableLimits/elementBytesMax`` bytes.
    @discardableResult
    public mutating func insert(_ element: [UInt8]) -> Bool {
        guard element.count <= MergeableLimits.elementBytesMax else { return false }
        return all.insert(element).inserted
    }

    @discardableResult
    public mutating func insert(_ element: String) -> Bool { insert(Array(element.utf8)) }

    public mutating func merge(_ other: GrowOnlySet) {
        all.formUnion(other.all)
    }
}

extension GrowOnlySet {
    public var encoded: [UInt8] {
        var writer = MergeableWriter(.growOnlySet)
        writer.put(all.count)
        for element in elements { writer.put(element) }
        return writer.bytes
    }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        var reader = try MergeableReader(bytes, .growOnlySet)
        let count = try reader.takeCount(bytesEach: 1)
        all.reserveCapacity(count)
        var previous: [UInt8]?
        for _ in 0..<count {
            let element = try reader.takeBytes()
            try reader.check(previous.map { $0.precedes(element) } ?? true)
            all.insert(element)
            previous = element
        }
        try reader.finish()
    }
}
