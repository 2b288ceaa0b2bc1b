import Glibc
import Simulation
import TestSupport
import Tidemark

/// What the command line asks for.
struct SimulateOptions {
    var seed = Seed(1)
    var seconds = 10.0
    var seedsMax = Int.max
    /// Whether only the one seed is run.
    var isSingle = false
    var printsTrace = false
    var plantedBugs: PlantedBugs = []
    var findings: KnownFinding = []

    static let usage = """
        usage: Simulate --seed N [--seconds S] [--seeds N] [--only] [--trace] [--bug NAME]
                        [--find forked|dragged]
        bugs that can be planted: \(PlantedBugs.named.map(\.name).joined(separator: ", "))
        """

    /// nil if the arguments make no sense.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            switch name {
            case "--only": isSingle = true
            case "--trace": printsTrace = true
            default:
                guard let value = rest.popFirst(), take(name, value) else { return nil }
            }
        }
    }

    private mutating func take(_ name: String, _ value: String) -> Bool {
        switch name {
        case "--seed":
            guard let number = Seed(value) else { return false }
            seed = number
        case "--seconds":
            guard let number = Double(value) else { return false }
            seconds = number
        case "--seeds":
            guard let number = Int(value), number > 0 else { return false }
            seedsMax = number
        case "--bug":
            guard let bug = PlantedBugs.named.first(where: { $0.name == value })?.bug else {
                return false
            }
            plantedBugs.insert(bug)
        case "--find":
            switch value {
            case "forked": findings.insert(.forkedStore)
            case "dragged": findings.insert(.draggedClock)
            default: return false
            }
        default: return false
        }
        return true
    }
}

/// Prints a line at once, whoever reads it.
func say(_ line: String) {
    print(line)
    fflush(nil)
}
