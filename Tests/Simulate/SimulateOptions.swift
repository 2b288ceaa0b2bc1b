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
    /// Whether traces say which records have changed.
    var showsRecords = false
    var plantedBugs: PlantedBugs = []
    var findings: KnownFinding = []
    /// In place of those in the seed; nil to leave these.
    private var traits: SimulatedTraits?
    /// Whether each seed gets traits of its own.
    var isMixed = false
    /// Whether to look for the first seed that finds each bug that can be planted.
    var findsBugs = false
    /// Whether the run goes on after a seed that fails, and only counts what it finds.
    var goesOn = false

    static let usage = """
        usage: Simulate --seed N [--seconds S] [--seeds N] [--only] [--trace] [--records]
                        [--traits NAME+NAME...|mixed] [--bug NAME] [--bugs]
                        [--find dragged] [--go-on]
        traits: \(SimulatedTraits.named.map(\.name).joined(separator: ", "))
        bugs, in debug builds: \(PlantedBugs.named.map(\.name).joined(separator: ", "))
        """

    /// nil if the arguments make no sense.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            switch name {
            case "--only": isSingle = true
            case "--trace": printsTrace = true
            case "--records": showsRecords = true
            case "--bugs":
                guard PlantedBugs.arePossible else { return nil }
                findsBugs = true
            case "--go-on": goesOn = true
            default:
                guard let value = rest.popFirst(), take(name, value) else { return nil }
            }
        }
        if let traits { seed = seed.with(traits) }
    }

    /// The seed of a run, with the traits that it is to have.
    func complete(_ seed: Seed) -> Seed {
        isMixed ? seed.with(.drawn(for: seed)) : seed
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
            guard PlantedBugs.arePossible,
                let bug = PlantedBugs.named.first(where: { $0.name == value })?.bug
            else { return false }
            plantedBugs.insert(bug)
        case "--traits":
            isMixed = value == "mixed"
            guard !isMixed else { return true }
            guard let named = SimulatedTraits(value) else { return false }
            traits = named
        case "--find":
            switch value {
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
