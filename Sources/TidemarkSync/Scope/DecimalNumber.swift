// Why not Double: two integers above 2^53 may be one double, and a scope that takes them for equal
// keeps records that nobody asked for. JSON numbers have any number of digits, so they are compared
// as they are written.

/// What a JSON number is worth: 0.d1d2d3... x 10^place.
struct DecimalNumber {
    let isNegative: Bool
    /// As bytes of ASCII, neither the first nor the last a zero; none for zero.
    let digits: [UInt8]
    let place: Int

    /// O(digits).
    init(_ number: JSONNumber) {
        var text = Array(number.digits.utf8)[...]
        let isNegative = text.first == UInt8(ascii: "-")
        if isNegative { text.removeFirst() }
        let mantissa = text.prefix { $0 != UInt8(ascii: "e") && $0 != UInt8(ascii: "E") }
        let exponent = Self.exponent(text.dropFirst(mantissa.count + 1))
        let point = mantissa.firstIndex(of: UInt8(ascii: ".")) ?? mantissa.endIndex
        let all = mantissa.filter { $0 != UInt8(ascii: ".") }
        let zeros = all.prefix { $0 == UInt8(ascii: "0") }.count
        var digits = Array(all.dropFirst(zeros))
        while digits.last == UInt8(ascii: "0") { digits.removeLast() }
        self.digits = digits
        self.isNegative = isNegative && !digits.isEmpty
        place = digits.isEmpty ? 0 : (point - mantissa.startIndex) - zeros + exponent
    }

    /// Far beyond every number of digits, and far from where numbers end.
    private static let exponentMax = 1 << 60

    /// - Parameter text: a sign, if any, and digits; nothing for 0.
    private static func exponent(_ text: ArraySlice<UInt8>) -> Int {
        let isNegative = text.first == UInt8(ascii: "-")
        var exponent = 0
        for byte in text where byte != UInt8(ascii: "-") && byte != UInt8(ascii: "+") {
            exponent = min(exponentMax, exponent * 10 + Int(byte - UInt8(ascii: "0")))
            // Ten times as much would not fit.
            if exponent >= exponentMax / 16 { exponent = exponentMax / 16 }
        }
        return isNegative ? -exponent : exponent
    }

    /// Negative, 0 or positive.
    func order(to other: DecimalNumber) -> Int {
        if isNegative != other.isNegative { return isNegative ? -1 : 1 }
        let order = magnitudeOrder(to: other)
        return isNegative ? -order : order
    }

    private func magnitudeOrder(to other: DecimalNumber) -> Int {
        guard !digits.isEmpty, !other.digits.isEmpty else {
            return digits.count.signum() - other.digits.count.signum()
        }
        if place != other.place { return place < other.place ? -1 : 1 }
        if digits == other.digits { return 0 }
        return digits.lexicographicallyPrecedes(other.digits) ? -1 : 1
    }
}
