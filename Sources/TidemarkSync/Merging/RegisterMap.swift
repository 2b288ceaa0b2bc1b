import Tidemark

/// Named fields, each of which keeps what was last written to it: two replicas that change
/// different fields at once both have their way.
///
/// ```swift
/// try people.update("7", as: RegisterMap.self) { person, turn in
///     person.set("Ada", for: "name", turn)
/// }
/// ```
///
/// Of two writes to one field the one with the later time stays, then that of the greater
/// contributor. The time of a write is later than every one in the map, so a field that was seen
/// with a time in the far future can still be written. A removed field leaves its name and the
/// time of its removal for good.
public struct RegisterMap: MergeableValue {
    private struct Register: Hashable {
        var time: HybridTime
        var contributor: UInt64
        /// nil if the field was removed.
        var value: [UInt8]?

        /// Total, so that the greater of two is the same everywhere.
        func isLater(than other: Register) -> Bool {
            if time != other.time { return time > other.time }
            if contributor != other.contributor { return contributor > other.contributor }
            guard let value else { return false }
            return other.value.map { $0.precedes(value) } ?? true
        }
    }

    private var registers: [[UInt8]: Register] = [:]

    public init(_ turn: MergeTurn) {}

    /// The names of the fields that have a value, in the order of their bytes. O(n log n).
    public var names: [[UInt8]] {
        registers.filter { $0.value.value != nil }.keys.sorted { $0.precedes($1) }
    }

    /// The value of a field; nil if it has none.
    public subscript(name: [UInt8]) -> [UInt8]? { registers[name]?.value }

    /// The value of a field as text; nil if it has none or it is not UTF-8.
    public func text(_ name: String) -> String? {
        self[Array(name.utf8)].flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// - Returns: false, and nothing is changed, if name or value have more than
    ///   ``MergeableLimits/elementBytesMax`` bytes.
    @discardableResult
    public mutating func set(_ value: [UInt8], for name: [UInt8], _ turn: MergeTurn) -> Bool {
        let bytesMax = max(value.count, name.count)
        guard bytesMax <= MergeableLimits.elementBytesMax else { return false }
        registers[name] = register(value, turn)
        return true
    }

    @discardableResult
    public mutating func set(_ value: String, for name: String, _ turn: MergeTurn) -> Bool {
        set(Array(value.utf8), for: Array(name.utf8), turn)
    }

    /// - Returns: whether it had a value.
    @discardableResult
    public mutating func remove(_ name: [UInt8], _ turn: MergeTurn) -> Bool {
        guard self[name] != nil else { return false }
        registers[name] = register(nil, turn)
        return true
    }

    @discardableResult
    public mutating func remove(_ name: String, _ turn: MergeTurn) -> Bool {
        remove(Array(name.utf8), turn)
    }

    private func register(_ value: [UInt8]?, _ turn: MergeTurn) -> Register {
        let latest = registers.values.map(\.time.rawValue).max() ?? 0
        let time = min(max(turn.time.rawValue, latest + 1), HybridTime.greatest.rawValue)
        return Register(
            time: HybridTime(rawValue: time), contributor: turn.opening, value: value)
    }

    public mutating func merge(_ other: RegisterMap) {
        registers.merge(other.registers) { $1.isLater(than: $0) ? $1 : $0 }
    }
}

extension RegisterMap {
    public var encoded: [UInt8] {
        var writer = MergeableWriter(.registerMap)
        writer.put(registers.count)
        for (name, register) in registers.sorted(by: { $0.key.precedes($1.key) }) {
            writer.put(name)
            writer.put(fixed: register.time.rawValue)
            writer.put(fixed: register.contributor)
            writer.put(register.value != nil)
            if let value = register.value { writer.put(value) }
        }
        return writer.bytes
    }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        var reader = try MergeableReader(bytes, .registerMap)
        var previous: [UInt8]?
        for _ in 0..<(try reader.takeCount(bytesEach: 18)) {
            let name = try reader.takeBytes()
            try reader.check(previous.map { $0.precedes(name) } ?? true)
            let (time, contributor) = (try reader.takeTime(), try reader.takeFixed())
            let value = try reader.takeFlag() ? try reader.takeBytes() : nil
            registers[name] = Register(time: time, contributor: contributor, value: value)
            previous = name
        }
        try reader.finish()
    }
}
