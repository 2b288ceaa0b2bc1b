// The words of the protocol as small values. Everything is a number of one byte, so that a whole
// world is compared and hashed quickly.

/// For each id the highest counter that was seen. There are four ids: those of the three replicas,
/// and the one that a replica takes which went back in time.
package struct SpecVector: Hashable, Sendable {
    private var counters = SIMD4<UInt8>()

    package init() {}

    package subscript(id: Int) -> UInt8 {
        get { counters[id] }
        set { counters[id] = newValue }
    }

    package var isEmpty: Bool { counters == SIMD4() }

    package func contains(_ dot: SpecDot) -> Bool { dot.counter <= counters[dot.id] }

    package func covers(_ other: SpecVector) -> Bool { all(counters .>= other.counters) }

    package mutating func insert(_ dot: SpecDot) {
        counters[dot.id] = max(counters[dot.id], dot.counter)
    }

    package mutating func formUnion(_ other: SpecVector) {
        counters = pointwiseMax(counters, other.counters)
    }

    package func union(_ other: SpecVector) -> SpecVector {
        var joined = self
        joined.formUnion(other)
        return joined
    }

    package func intersection(_ other: SpecVector) -> SpecVector {
        var common = self
        common.counters = pointwiseMin(counters, other.counters)
        return common
    }

    package func removing(_ id: Int) -> SpecVector {
        var rest = self
        rest.counters[id] = 0
        return rest
    }

    package func removing(_ ids: SpecIDs) -> SpecVector {
        ids.reduce(self) { $0.removing($1) }
    }
}

/// The name of one write.
package struct SpecDot: Hashable, Comparable, Sendable {
    package var number: UInt8
    package var counter: UInt8
    package var id: Int { Int(number) }

    package init(_ id: Int, _ counter: UInt8) {
        number = UInt8(id)
        self.counter = counter
    }

    package static func < (left: SpecDot, right: SpecDot) -> Bool {
        left.number != right.number ? left.number < right.number : left.counter < right.counter
    }
}

/// A set of ids.
package struct SpecIDs: Hashable, Sendable, Sequence {
    private var bits: UInt8 = 0

    package init() {}

    package var isEmpty: Bool { bits == 0 }

    package func contains(_ id: Int) -> Bool { bits & 1 << id != 0 }

    package mutating func insert(_ id: Int) { bits |= 1 << id }

    package mutating func remove(_ id: Int) { bits &= ~(1 << id) }

    package func isSuperset(of other: SpecIDs) -> Bool { other.bits & ~bits == 0 }

    package func makeIterator() -> IndexingIterator<[Int]> {
        (0..<4).filter(contains).makeIterator()
    }
}

/// A hybrid logical time: a tick, and 16 times within it. The last of these is given to what
/// outlives a deletion, and by no clock.
package struct SpecTime: Hashable, Comparable, Sendable {
    package var raw: UInt16

    package init(raw: UInt16 = 0) { self.raw = raw }

    package static let zero = SpecTime()

    package var tick: UInt16 { raw >> 4 }

    package var isOutliving: Bool { raw & 15 == 15 }

    package var next: SpecTime { SpecTime(raw: raw + 1) }

    /// The beginning of the tick after this one; after the end of a tick, of the one after that.
    /// There a store may have stamped what it notes beside the records, which nobody counts here.
    package var nextTick: SpecTime { SpecTime(raw: (tick + (isOutliving ? 2 : 1)) << 4) }

    /// The end of the tick, or of the next one.
    package var outlived: SpecTime {
        isOutliving ? SpecTime(raw: raw + 16) : SpecTime(raw: raw | 15)
    }

    package static func < (left: SpecTime, right: SpecTime) -> Bool { left.raw < right.raw }
}

/// Which write made a record what it is, and what that write had seen.
package struct SpecVersion: Hashable, Sendable {
    package var dot: SpecDot
    /// The write itself included.
    package var vector: SpecVector
    package var time: SpecTime

    package init(dot: SpecDot, vector: SpecVector, time: SpecTime) {
        self.dot = dot
        self.vector = vector
        self.time = time
        self.vector.insert(dot)
    }

    package enum Relation: Hashable, Sendable { case same, descendant, ancestor, concurrent }

    /// Rule: a version descends from another one if its vector has the other's dot; if each has the
    /// other's, the later one counts as the ancestor.
    package func relation(to other: SpecVersion) -> Relation {
        if dot == other.dot { return .same }
        let isAfter = vector.contains(other.dot)
        let isBefore = other.vector.contains(dot)
        if isAfter, isBefore { return isLater(than: other) ? .ancestor : .descendant }
        return isAfter ? .descendant : isBefore ? .ancestor : .concurrent
    }

    /// Rule: the last writer is the one with the greater time, then the greater dot.
    package func isLater(than other: SpecVersion) -> Bool {
        time != other.time ? time > other.time : dot > other.dot
    }

    /// Rule: a descendant takes the place of its ancestor under its own dot if it is later, or has
    /// seen all that the ancestor was joined with.
    package func supersedesAsItIs(_ other: SpecVersion) -> Bool {
        isLater(than: other) || vector.covers(other.vector)
    }

    /// Rule: two versions are in dispute if each has seen the other and the later one has outlived
    /// a deletion.
    package func isInDispute(with other: SpecVersion) -> Bool {
        dot != other.dot && max(time, other.time).isOutliving && vector.contains(other.dot)
            && other.vector.contains(dot)
    }
}

/// Which acknowledged write of a replica a record holds: what the dots are checked against.
package struct SpecWriteName: Hashable, Sendable {
    package var bit: UInt8

    package init(replica: Int, ordinal: Int) { bit = UInt8(replica * 10 + ordinal) }

    package init(bit: Int) { self.bit = UInt8(bit) }

    package var replica: Int { Int(bit) / 10 }
    package var ordinal: Int { Int(bit) % 10 }
    package var set: SpecWrites { SpecWrites(bits: 1 << UInt32(bit)) }
}

/// A set of acknowledged writes.
package struct SpecWrites: Hashable, Sendable {
    package var bits: UInt32 = 0

    package init(bits: UInt32 = 0) { self.bits = bits }

    package func contains(_ name: SpecWriteName) -> Bool { bits & 1 << UInt32(name.bit) != 0 }

    package mutating func formUnion(_ other: SpecWrites) { bits |= other.bits }

    package func union(_ other: SpecWrites) -> SpecWrites { SpecWrites(bits: bits | other.bits) }

    package func intersection(_ other: SpecWrites) -> SpecWrites {
        SpecWrites(bits: bits & other.bits)
    }

    package func subtracting(_ other: SpecWrites) -> SpecWrites {
        SpecWrites(bits: bits & ~other.bits)
    }

    package var isEmpty: Bool { bits == 0 }
}

/// A key's newest version at one replica.
package struct SpecRecord: Hashable, Sendable {
    package var write: SpecWriteName
    package var isDeleted: Bool
    package var version: SpecVersion
    /// Its place in the replica's order of change.
    package var count: UInt8
    /// The writes to the key that it has taken the place of, itself included.
    package var replaced: SpecWrites

    package init(
        write: SpecWriteName, isDeleted: Bool, version: SpecVersion, count: UInt8,
        replaced: SpecWrites
    ) {
        self.write = write
        self.isDeleted = isDeleted
        self.version = version
        self.count = count
        self.replaced = replaced
    }

    /// Values of different writes differ, and all deletions are equal.
    package func hasValue(of other: SpecRecord) -> Bool {
        isDeleted == other.isDeleted && (isDeleted || write == other.write)
    }
}

/// Deletions of which nothing is left: what they had seen, and the date of the last one.
package struct SpecForgotten: Hashable, Sendable {
    package var vector = SpecVector()
    package var time = SpecTime.zero

    package init() {}

    package var isEmpty: Bool { vector.isEmpty }

    package func covers(_ version: SpecVersion) -> Bool {
        !isEmpty && vector.covers(version.vector)
    }

    package mutating func formUnion(_ other: SpecForgotten) {
        vector.formUnion(other.vector)
        time = max(time, other.time)
    }

    package mutating func insert(_ version: SpecVersion) {
        vector.formUnion(version.vector)
        time = max(time, version.time)
    }
}

/// Two or four things side by side, without memory of their own.
package struct Two<Element> {
    private var first: Element
    private var second: Element

    package init(_ element: Element) { (first, second) = (element, element) }

    package subscript(index: Int) -> Element {
        get { index == 0 ? first : second }
        set { if index == 0 { first = newValue } else { second = newValue } }
    }

    package var swapped: Two<Element> {
        var other = self
        (other.first, other.second) = (second, first)
        return other
    }
}

extension Two: Equatable where Element: Equatable {}
extension Two: Hashable where Element: Hashable {}
extension Two: Sendable where Element: Sendable {}

package struct Four<Element> {
    private var low: Two<Element>
    private var high: Two<Element>

    package init(_ element: Element) { (low, high) = (Two(element), Two(element)) }

    package subscript(index: Int) -> Element {
        get { index < 2 ? low[index] : high[index - 2] }
        set { if index < 2 { low[index] = newValue } else { high[index - 2] = newValue } }
    }
}

extension Four: Equatable where Element: Equatable {}
extension Four: Hashable where Element: Hashable {}
extension Four: Sendable where Element: Sendable {}
