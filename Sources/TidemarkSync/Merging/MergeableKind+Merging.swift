extension MergeableKind {
    /// Merges two values of the same kind, whichever it is.
    static func merged(_ left: [UInt8], _ right: [UInt8]) throws(MergeableError) -> [UInt8] {
        guard left.count > 1, left[0] == mark, let kind = MergeableKind(rawValue: left[1]) else {
            throw MergeableError("the value is no mergeable one")
        }
        // Of a maximum or minimum only the bytes matter: their order is that of the values.
        switch kind {
        case .counter: return try merged(left, right, as: Counter.self)
        case .growOnlySet: return try merged(left, right, as: GrowOnlySet.self)
        case .observedRemoveSet: return try merged(left, right, as: ObservedRemoveSet.self)
        case .maximum: return try merged(left, right, as: Maximum<[UInt8]>.self)
        case .minimum: return try merged(left, right, as: Minimum<[UInt8]>.self)
        case .registerMap: return try merged(left, right, as: RegisterMap.self)
        }
    }

    static func merged<Value: MergeableValue>(
        _ left: [UInt8], _ right: [UInt8], as type: Value.Type
    ) throws(MergeableError) -> [UInt8] {
        var value = try Value(decoding: left)
        value.merge(try Value(decoding: right))
        let bytes = value.encoded
        guard bytes.count <= MergeableLimits.bytesMax else {
            throw MergeableError(
                "merged it has \(bytes.count) bytes, and \(MergeableLimits.bytesMax) are the most")
        }
        return bytes
    }
}
