extension KeyRange {
    /// Every key from one to another, that one included.
    public init(from lowerBound: [UInt8]?, through last: [UInt8]) {
        // The next key in the order of bytes is the same with a zero behind it.
        self.init(from: lowerBound, upTo: last + [0])
    }

    /// One key alone.
    public static func only(_ key: [UInt8]) -> KeyRange {
        KeyRange(from: key, through: key)
    }

    public static func only(_ key: String) -> KeyRange {
        .only(Array(key.utf8))
    }

    /// The keys that belong to both.
    public func intersection(_ other: KeyRange) -> KeyRange {
        let lower: [UInt8]?
        if let one = lowerBound, let two = other.lowerBound {
            lower = one.lexicographicallyPrecedes(two) ? two : one
        } else {
            lower = lowerBound ?? other.lowerBound
        }
        let upper: [UInt8]?
        if let one = upperBound, let two = other.upperBound {
            upper = one.lexicographicallyPrecedes(two) ? one : two
        } else {
            upper = upperBound ?? other.upperBound
        }
        return KeyRange(from: lower, upTo: upper)
    }

    /// Whether no key can belong to it.
    public var isEmpty: Bool {
        guard let upperBound else { return false }
        return !(lowerBound ?? []).lexicographicallyPrecedes(upperBound)
    }

    /// Whether a key belongs to it.
    public func contains(_ key: [UInt8]) -> Bool {
        unsafe key.withUnsafeBytes { unsafe contains(ByteView($0)) }
    }

    func contains(_ key: ByteView) -> Bool {
        if let lowerBound, Self.compare(key, lowerBound) < 0 { return false }
        guard let upperBound else { return true }
        return Self.compare(key, upperBound) < 0
    }

    static func compare(_ key: ByteView, _ bound: [UInt8]) -> Int {
        unsafe bound.withUnsafeBytes { unsafe key.compare(ByteView($0)) }
    }
}
