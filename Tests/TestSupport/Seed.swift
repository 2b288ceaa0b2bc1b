import Glibc

/// The number from which everything random in a test follows.
///
/// A test draws one, or takes the one in the environment variable `TIDEMARK_SEED`, and prints it
/// when it starts, so that a failed run can be repeated:
///
///     TIDEMARK_SEED=0x1f00c0ffee tools/test --filter TheFailedTest
package struct Seed: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The seed of the environment, or else a new one; printed with the test's name.
    package static func drawn(for test: String = #function) -> Seed {
        let seed = fromEnvironment() ?? Seed(UInt64.random(in: .min ... .max))
        print("seed of \(test): TIDEMARK_SEED=\(seed)")
        return seed
    }

    /// Reads what ``description`` writes, or a decimal number.
    package init?(_ text: String) {
        let isHexadecimal = text.hasPrefix("0x")
        let digits = isHexadecimal ? text.dropFirst(2) : text[...]
        guard let value = UInt64(digits, radix: isHexadecimal ? 16 : 10) else { return nil }
        self.init(value)
    }

    package var description: String { "0x" + String(rawValue, radix: 16) }

    private static func fromEnvironment() -> Seed? {
        guard let text = unsafe getenv("TIDEMARK_SEED") else { return nil }
        return Seed(unsafe String(cString: text))
    }
}

/// How many random schedules a test draws: as many as it says, times `TIDEMARK_RUNS` of the
/// environment: a run of all tests draws few new ones each time, and `tools/long` many.
package func schedules(_ count: Int) -> Range<UInt64> {
    let times = unsafe getenv("TIDEMARK_RUNS").flatMap { unsafe Int(String(cString: $0)) } ?? 1
    return 0..<UInt64(count * max(1, times))
}

/// A small, fast generator whose whole state is one number.
///
/// Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (SplitMix64, 2014). Not for
/// secrets.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(_ seed: Seed) {
        state = seed.rawValue
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A generator of its own for one part of a test, so that more draws there change nothing
    /// elsewhere.
    package mutating func split() -> SeededGenerator {
        SeededGenerator(Seed(next()))
    }

    /// 0..<bound, or 0 if the bound is not positive.
    package mutating func below(_ bound: Int) -> Int {
        bound > 0 ? Int.random(in: 0..<bound, using: &self) : 0
    }

    /// True once in so many times on average.
    package mutating func oneIn(_ times: Int) -> Bool {
        below(times) == 0
    }

    package mutating func element<Element>(of array: [Element]) -> Element {
        array[below(array.count)]
    }

    /// Incompressible bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            var word: UInt64 = 0
            for index in 0..<count {
                if index % 8 == 0 { word = next() }
                unsafe buffer[index] = UInt8(truncatingIfNeeded: word >> UInt64(index % 8 * 8))
            }
            initializedCount = count
        }
    }

    /// Bytes that shrink to a fraction: one short phrase over and over.
    package mutating func compressibleBytes(_ count: Int) -> [UInt8] {
        let phrase = bytes(1 + below(40))
        return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            for index in 0..<count { unsafe buffer[index] = phrase[index % phrase.count] }
            initializedCount = count
        }
    }
}
