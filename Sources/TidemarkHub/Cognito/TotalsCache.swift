import Synchronization

/// Facts of the datasets that were asked about lately.
///
/// Bounded by their cost, and cut into stripes with a lock each. A stripe has two halves: what is
/// asked for goes into the young one, and when that is full the old one is given up and the young
/// one takes its place. So what is asked for again stays, and nothing is ever sorted or searched.
final class TotalsCache: Sendable {
    /// Facts of a dataset cost 1 or a little more.
    static let costMax = 65_536
    private static let stripeCount = 16

    private struct Halves {
        var young: [String: DatasetFacts] = [:]
        var old: [String: DatasetFacts] = [:]
        var youngCost = 0

        mutating func put(_ facts: DatasetFacts, _ name: String, costMax: Int) {
            old[name] = nil
            let former = young.updateValue(facts, forKey: name)
            youngCost += facts.cost - (former?.cost ?? 0)
            guard youngCost > costMax else { return }
            old = young
            young = [:]
            youngCost = 0
        }
    }

    private final class Stripe: Sendable {
        let halves = Mutex(Halves())
    }

    private let stripes: [Stripe]
    private let halfCostMax: Int

    init(costMax: Int = TotalsCache.costMax) {
        stripes = (0..<Self.stripeCount).map { _ in Stripe() }
        halfCostMax = max(1, costMax / Self.stripeCount / 2)
    }

    /// Facts of a dataset at some place in its order of change. O(1).
    subscript(_ name: String) -> DatasetFacts? {
        stripe(of: name).halves.withLock { halves in
            if let facts = halves.young[name] { return facts }
            guard let facts = halves.old[name] else { return nil }
            halves.put(facts, name, costMax: halfCostMax)
            return facts
        }
    }

    /// Keeps facts, unless newer ones of the same opening of the store are kept. O(1).
    func keep(_ facts: DatasetFacts, of name: String) {
        stripe(of: name).halves.withLock { halves in
            let known = halves.young[name] ?? halves.old[name]
            if let known, known.incarnation == facts.incarnation,
                known.position > facts.position
            {
                return
            }
            halves.put(facts, name, costMax: halfCostMax)
        }
    }

    func forget(_ name: String) {
        stripe(of: name).halves.withLock { halves in
            halves.old[name] = nil
            if let former = halves.young.removeValue(forKey: name) {
                halves.youngCost -= former.cost
            }
        }
    }

    private func stripe(of name: String) -> Stripe {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        // FNV-1a: the same at each start, so that a test that fails can be repeated.
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return stripes[Int(hash % UInt64(stripes.count))]
    }
}
