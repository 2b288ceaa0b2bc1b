import Testing

@testable import Torture

/// A run says what it has been through, and of what it says nothing.
struct TortureCountsTests {
    @Test func whatNeverHappenedIsTold() {
        var counts = TortureCounts()
        var proxy = TortureProxy.Counts()
        #expect(counts.missing(proxy).count == 8)
        counts.operations = 9
        counts.exchanges = 5
        counts.failures = 1
        counts.replicaKills = 3
        (proxy.cuts, proxy.delays) = (2, 4)
        #expect(counts.missing(proxy) == ["kill of the hub", "damaged bit"])
        counts.hubKills = 2
        proxy.damagedBits = 1
        #expect(counts.missing(proxy).isEmpty)
        #expect(counts.text(proxy).contains("5 kills (2 of the hub)"))
    }

    @Test func theFirstRoundHasAllTrouble() {
        let all = ProxyFaults.all
        #expect(all.cutOneIn > 0 && all.damageOneIn > 0 && all.delayOneIn > 0)
        #expect(all.delayMillisecondsMax > 0)
    }
}
