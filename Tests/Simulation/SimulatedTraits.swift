package import TestSupport

/// What a run has that a plain one has not. Stands in the two highest bytes of the seed: so one
/// number says all of a run, and seeds without those bytes mean what they ever meant.
package struct SimulatedTraits: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package init(of seed: Seed) {
        rawValue = UInt16(truncatingIfNeeded: seed.rawValue >> 48)
    }

    /// The last one or two replicas keep a part of what the others have, and now another one.
    package static let parts = SimulatedTraits(rawValue: 1 << 8)
    /// Deletions are forgotten after a minute; replicas are cut off for long, and given up.
    package static let lateComers = SimulatedTraits(rawValue: 1 << 9)
    /// Clocks go ahead and back by hours, and stores believe minutes.
    package static let clocks = SimulatedTraits(rawValue: 1 << 10)
    /// Stores are copied onto others, and put back to where they were, behind their backs.
    package static let copies = SimulatedTraits(rawValue: 1 << 11)
    /// Handlers stop, throw or leave conflicts, which are settled later; a journal is kept.
    package static let pending = SimulatedTraits(rawValue: 1 << 12)
    /// A dataset is to go into another one.
    package static let merging = SimulatedTraits(rawValue: 1 << 13)
    /// One dataset is large enough to be taken over as it lies in segments, and what lies there is
    /// damaged in the memory of whoever sends it.
    package static let segments = SimulatedTraits(rawValue: 1 << 14)
    /// Values that merge by themselves: JSON documents, sets.
    package static let values = SimulatedTraits(rawValue: 1 << 15)
    /// Records expire, and are swept.
    package static let expiry = SimulatedTraits(rawValue: 1 << 0)
    /// History is kept, and moments of the past are read again and again.
    package static let past = SimulatedTraits(rawValue: 1 << 1)
    /// Changes are carried from replica to replica in files.
    package static let bundles = SimulatedTraits(rawValue: 1 << 2)
    /// Receivers refuse some records, as long as there is trouble.
    package static let refusals = SimulatedTraits(rawValue: 1 << 3)

    /// All of them by name.
    package static let named: [(name: String, trait: SimulatedTraits)] = [
        ("parts", .parts), ("lateComers", .lateComers), ("clocks", .clocks), ("copies", .copies),
        ("pending", .pending), ("merging", .merging), ("segments", .segments),
        ("values", .values), ("expiry", .expiry), ("past", .past), ("bundles", .bundles),
        ("refusals", .refusals),
    ]

    /// One to three of them, for a seed that says nothing of traits.
    package static func drawn(for seed: Seed) -> SimulatedTraits {
        var random = SeededGenerator(Seed(~seed.rawValue ^ 0x7247))
        var traits: SimulatedTraits = []
        for _ in 0...random.below(3) { traits.insert(random.element(of: named).trait) }
        return traits
    }

    /// Reads what ``description`` writes; nil if it names anything else.
    package init?(_ text: String) {
        var traits: SimulatedTraits = []
        for name in text.split(separator: "+") {
            guard let trait = Self.named.first(where: { $0.name == name })?.trait else {
                return nil
            }
            traits.insert(trait)
        }
        self = traits
    }
}

extension SimulatedTraits: CustomStringConvertible {
    package var description: String {
        Self.named.filter { contains($0.trait) }.map(\.name).joined(separator: "+")
    }
}

extension Seed {
    /// The same with these traits in place of those that it has.
    package func with(_ traits: SimulatedTraits) -> Seed {
        Seed((rawValue & (UInt64.max >> 16)) | (UInt64(traits.rawValue) << 48))
    }
}
