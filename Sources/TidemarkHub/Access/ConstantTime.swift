/// Comparison of secrets.
enum ConstantTime {
    /// Whether both are equal. Looks at every byte whatever the first ones are, so that the time it
    /// takes tells nothing but the two counts. O(n).
    static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for (one, other) in zip(left, right) {
            difference |= one ^ other
        }
        return difference == 0
    }
}
