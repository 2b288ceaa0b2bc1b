/// Record numbers as keys of 16 decimal digits whose order is that of the numbers.
///
/// The last digit of a stored key is 0, so that a key with another last digit is missing and yet
/// lies between two that are there.
enum Keys {
    static let bytes = 16

    /// Writes the key of a record.
    /// - Parameter lastDigit: 0 for a stored key, 1...9 for one that no engine has.
    @inline(__always)
    static func write(_ number: Int, lastDigit: UInt8 = 0, to key: UnsafeMutableRawPointer) {
        key.storeBytes(of: 0x30 + lastDigit, toByteOffset: 15, as: UInt8.self)
        var rest = UInt64(truncatingIfNeeded: number)
        var place = 14
        while place > 0 {
            let pair = rest % 100
            rest /= 100
            key.storeBytes(of: UInt8(0x30 + pair % 10), toByteOffset: place, as: UInt8.self)
            key.storeBytes(of: UInt8(0x30 + pair / 10), toByteOffset: place - 1, as: UInt8.self)
            place -= 2
        }
        key.storeBytes(of: UInt8(0x30 + rest % 10), toByteOffset: 0, as: UInt8.self)
    }
}

/// All numbers below a bound in an order without pattern, each once, computed instead of stored.
///
/// A Feistel network over the next even power of two, walked until it falls below the bound (Black
/// and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Expected cost: below four rounds
/// of four multiplications.
struct Permutation: Sendable {
    let count: Int
    private let halfBits: UInt64
    private let halfMask: UInt64
    private let keys: (UInt64, UInt64, UInt64, UInt64)

    init(of count: Int, seed: UInt64) {
        self.count = count
        var bits: UInt64 = 2
        while 1 << bits < UInt64(count) { bits += 2 }
        halfBits = bits / 2
        halfMask = 1 << halfBits - 1
        var random = SplitMix(seed: seed)
        keys = (random.next(), random.next(), random.next(), random.next())
    }

    @inline(__always)
    subscript(index: Int) -> Int {
        var value = UInt64(truncatingIfNeeded: index)
        repeat {
            var left = value >> halfBits
            var right = value & halfMask
            (left, right) = (right, left ^ mixed(right, keys.0))
            (left, right) = (right, left ^ mixed(right, keys.1))
            (left, right) = (right, left ^ mixed(right, keys.2))
            (left, right) = (right, left ^ mixed(right, keys.3))
            value = left << halfBits | right
        } while value >= UInt64(count)
        return Int(truncatingIfNeeded: value)
    }

    @inline(__always)
    private func mixed(_ value: UInt64, _ key: UInt64) -> UInt64 {
        ((value ^ key) &* 0x9E37_79B9_7F4A_7C15) >> 32 & halfMask
    }
}

/// The generator SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
