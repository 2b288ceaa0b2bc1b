import Foundation

/// Record numbers as YCSB draws them: few of them very often.
///
/// The rejection-free generator of Gray et al., "Quickly generating billion-record synthetic
/// databases" (SIGMOD 1994), with the constant 0.99; ranks are scattered over the key space by a
/// permutation. Drawn before the clock starts, since a draw costs as much as a read.
struct Zipfian {
    private static let theta = 0.99

    /// - Complexity: O(count + draws).
    static func draws(_ draws: Int, of count: Int, seed: UInt64) -> [UInt32] {
        let scatter = Permutation(of: count, seed: 0x7A69_7066)
        var zeta = 0.0
        for rank in 1...count { zeta += pow(1 / Double(rank), theta) }
        let zetaOfTwo = 1 + pow(0.5, theta)
        let alpha = 1 / (1 - theta)
        let eta =
            (1 - pow(2 / Double(count), 1 - theta)) / (1 - zetaOfTwo / zeta)
        var random = SplitMix(seed: seed)
        return (0..<draws).map { _ in
            let uniform = Double(random.next() >> 11) * 0x1p-53
            let scaled = uniform * zeta
            let rank: Int
            if scaled < 1 {
                rank = 0
            } else if scaled < zetaOfTwo {
                rank = min(1, count - 1)
            } else {
                let place = Double(count) * pow(eta * uniform - eta + 1, alpha)
                rank = min(Int(place), count - 1)
            }
            return UInt32(scatter[rank])
        }
    }
}
