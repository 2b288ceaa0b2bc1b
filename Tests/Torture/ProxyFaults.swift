import TestSupport

/// How often what passes through the proxy meets what: one piece in so many, and none for 0.
struct ProxyFaults: Hashable, Sendable {
    var cutOneIn = 0
    var damageOneIn = 0
    var delayOneIn = 0
    var delayMillisecondsMax = 0

    static let quiet = ProxyFaults()

    /// All of it, and often.
    static let all = ProxyFaults(
        cutOneIn: 12, damageOneIn: 12, delayOneIn: 10, delayMillisecondsMax: 60)

    /// Of one round. Delays at their longest are longer than replicas wait.
    static func drawn(_ random: inout SeededGenerator) -> ProxyFaults {
        let delays = [(0, 0), (5, 10), (10, 60), (40, 3_000)]
        let delay = random.element(of: delays)
        return ProxyFaults(
            cutOneIn: random.element(of: [0, 12, 40, 150]),
            damageOneIn: random.element(of: [0, 12, 40, 150]), delayOneIn: delay.0,
            delayMillisecondsMax: delay.1)
    }

    /// What becomes of a piece of so many bytes, at least one.
    func fate(ofPieceOf byteCount: Int, _ random: inout SeededGenerator) -> PieceFate {
        var fate = PieceFate()
        if delayOneIn > 0, random.oneIn(delayOneIn) {
            fate.delayMilliseconds = 1 + random.below(delayMillisecondsMax)
        }
        if damageOneIn > 0, random.oneIn(damageOneIn) {
            for _ in 0...random.below(3) { fate.turnedBits.insert(random.below(byteCount * 8)) }
        }
        if cutOneIn > 0, random.oneIn(cutOneIn) {
            fate.cutAfter = random.below(byteCount)
        }
        return fate
    }
}

/// What becomes of a piece of what passes.
struct PieceFate: Hashable, Sendable {
    var delayMilliseconds = 0
    /// The places of bits that are turned over.
    var turnedBits: Set<Int> = []
    /// After how many of its bytes the connection is cut; nil if it is not.
    var cutAfter: Int?

    /// What is sent on of the piece, and how many of its bits are wrong.
    func applied(to piece: [UInt8]) -> (bytes: [UInt8], damagedBits: Int) {
        var bytes = Array(piece.prefix(cutAfter ?? piece.count))
        var damagedBits = 0
        for bit in turnedBits where bit / 8 < bytes.count {
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            damagedBits += 1
        }
        return (bytes, damagedBits)
    }
}
