import TestSupport
import Tidemark

/// What the command line asks of the driver.
struct TortureOptions {
    var seconds = 0.0
    var seed = Seed(UInt64.random(in: .min ... .max))
    var plantedBugs: PlantedBugs = []

    static let secondsMax = 1_000_000.0
    static let usage = """
        usage: Torture SECONDS [--seed N] [--bug NAME]
        bugs, in debug builds: \(PlantedBugs.named.map(\.name).joined(separator: ", "))
        """

    /// nil if the arguments make no sense.
    init?(_ arguments: [String]) {
        guard let first = arguments.first, let seconds = Double(first),
            seconds > 0, seconds <= Self.secondsMax
        else { return nil }
        self.seconds = seconds
        var rest = arguments.dropFirst()
        while let name = rest.popFirst() {
            guard let value = rest.popFirst(), take(name, value) else { return nil }
        }
    }

    private mutating func take(_ name: String, _ value: String) -> Bool {
        switch name {
        case "--seed":
            guard let number = Seed(value) else { return false }
            seed = number
        case "--bug":
            guard PlantedBugs.arePossible,
                let bug = PlantedBugs.named.first(where: { $0.name == value })?.bug
            else { return false }
            plantedBugs.insert(bug)
        default: return false
        }
        return true
    }
}
