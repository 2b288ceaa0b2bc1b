import Glibc
import TestSupport
import Testing

@testable import Torture

/// What passes through the proxy is what was sent, but for what the proxy says it did.
@Suite struct TortureProxyTests {
    /// Sends back what comes, one connection after the other.
    private func echo() throws -> LoopbackListener {
        try LoopbackListener { connection in
            var bytes = Loopback.receive(from: connection)
            while !bytes.isEmpty, Loopback.send(bytes, to: connection) {
                bytes = Loopback.receive(from: connection)
            }
            close(connection)
        }
    }

    /// What comes back of what is sent; less of it if the connection ends before.
    private func echoed(_ bytes: [UInt8], through port: Int) throws -> [UInt8] {
        let connection = try #require(try Loopback.connect(to: port))
        defer { close(connection) }
        guard Loopback.send(bytes, to: connection) else { return [] }
        var echo: [UInt8] = []
        while echo.count < bytes.count {
            let more = Loopback.receive(from: connection)
            if more.isEmpty { break }
            echo += more
        }
        return echo
    }

    /// A proxy that leads to an echo.
    private func withProxy(
        _ body: (TortureProxy, inout SeededGenerator) throws -> Void
    ) throws {
        var random = SeededGenerator(Seed.drawn())
        let echo = try echo()
        defer { echo.stop() }
        let proxy = try TortureProxy(random.split())
        defer { proxy.stop() }
        proxy.lead(to: echo.port)
        try body(proxy, &random)
    }

    private func differingBits(_ left: [UInt8], _ right: [UInt8]) -> Int {
        zip(left, right).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount }
    }

    @Test func withoutTroubleItPassesEverything() throws {
        try withProxy { proxy, random in
            for _ in 0..<20 {
                let bytes = random.bytes(1 + random.below(20_000))
                let back = try echoed(bytes, through: proxy.port)
                #expect(back == bytes)
            }
            let counts = proxy.counts
            #expect(counts.connections == 20)
            #expect(counts.cuts == 0 && counts.damagedBits == 0 && counts.delays == 0)
        }
    }

    @Test func itDamagesAsManyBitsAsItSays() throws {
        try withProxy { proxy, random in
            proxy.trouble(
                with: ProxyFaults(damageOneIn: 1, delayOneIn: 2, delayMillisecondsMax: 3))
            for _ in 0..<20 {
                let before = proxy.counts.damagedBits
                let bytes = random.bytes(1 + random.below(2_000))
                let back = try echoed(bytes, through: proxy.port)
                #expect(back.count == bytes.count)
                let damaged = proxy.counts.damagedBits - before
                let differing = differingBits(bytes, back)
                // A bit that was turned on either way is right again.
                #expect(damaged > 0 && differing <= damaged && (damaged - differing) % 2 == 0)
            }
        }
    }

    @Test func itCutsAndHeals() throws {
        try withProxy { proxy, random in
            proxy.trouble(with: ProxyFaults(cutOneIn: 1))
            let bytes = random.bytes(3_000)
            for _ in 0..<10 {
                let back = try echoed(bytes, through: proxy.port)
                #expect(back.count < bytes.count && back.elementsEqual(bytes.prefix(back.count)))
            }
            #expect(proxy.counts.cuts >= 10)
            proxy.heal()
            let healed = try echoed(bytes, through: proxy.port)
            #expect(healed == bytes)
            proxy.lead(to: nil)
            let refused = try echoed(bytes, through: proxy.port)
            #expect(refused.isEmpty)
        }
    }

    @Test func fatesAreWithinTheirBounds() {
        var random = SeededGenerator(Seed.drawn())
        for _ in 0..<1_000 {
            let faults = ProxyFaults.drawn(&random)
            let piece = random.bytes(1 + random.below(50))
            let fate = faults.fate(ofPieceOf: piece.count, &random)
            #expect((0...faults.delayMillisecondsMax).contains(fate.delayMilliseconds))
            let (bytes, damagedBits) = fate.applied(to: piece)
            #expect(bytes.count == fate.cutAfter ?? piece.count)
            #expect(differingBits(piece, bytes) == damagedBits)
            #expect(damagedBits <= fate.turnedBits.count)
            #expect(ProxyFaults.quiet.fate(ofPieceOf: piece.count, &random) == PieceFate())
        }
    }
}
