/// How often sizes came, by powers of two: class 0 is the size 0, class n the sizes from 2^(n-1) up
/// to below 2^n.
struct SizeHistogram {
    private(set) var weights: [Double] = []

    mutating func add(_ size: Int, weight: Double) {
        let number = Int.bitWidth - max(0, size).leadingZeroBitCount
        while weights.count <= number { weights.append(0) }
        weights[number] += weight
    }

    /// The classes from the first to the last that has anything, with their smallest sizes.
    var classes: [(least: Int, weight: Double)] {
        guard let first = weights.firstIndex(where: { $0 > 0 }) else { return [] }
        return weights.indices.dropFirst(first).map { number in
            (least: number == 0 ? 0 : 1 << (number - 1), weight: weights[number])
        }
    }

    var total: Double { weights.reduce(0, +) }
}
