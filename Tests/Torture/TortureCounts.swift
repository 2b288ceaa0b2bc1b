/// What was done so far.
struct TortureCounts {
    var rounds = 0
    var operations = 0
    var hubKills = 0
    var replicaKills = 0
    /// Exchanges that came to their end.
    var exchanges = 0
    /// Exchanges that ended with an error.
    var failures = 0
    /// Records that changed something on the other side of an exchange.
    var records = 0
    /// Replicas that began anew.
    var newStores = 0
    var differences = 0

    func text(_ proxy: TortureProxy.Counts) -> String {
        """
        \(rounds) rounds, \(operations) operations, \(replicaKills + hubKills) kills \
        (\(hubKills) of the hub), \(exchanges) exchanges (\(failures) failed), \
        \(records) records, \(newStores) new stores, \(proxy.cuts) cuts, \
        \(proxy.damagedBits) damaged bits, \(proxy.delays) delays, \
        \(differences) differences
        """
    }

    /// What never happened, so that nothing was shown about it.
    func missing(_ proxy: TortureProxy.Counts) -> [String] {
        let all = [
            ("kill of the hub", hubKills), ("kill of a replica", replicaKills),
            ("cut connection", proxy.cuts), ("damaged bit", proxy.damagedBits),
            ("delay", proxy.delays), ("exchange that failed", failures),
            ("exchange that came to its end", exchanges), ("operation", operations),
        ]
        return all.filter { $0.1 == 0 }.map(\.0)
    }
}
