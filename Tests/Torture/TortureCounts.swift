/// What was done so far.
struct TortureCounts {
    var rounds = 0
    var operations = 0
    var kills = 0
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
        \(rounds) rounds, \(operations) operations, \(kills) kills, \(exchanges) exchanges \
        (\(failures) failed), \(records) records, \(newStores) new stores, \
        \(proxy.cuts) cuts, \(proxy.damagedBits) damaged bits, \(proxy.delays) delays, \
        \(differences) differences
        """
    }
}
