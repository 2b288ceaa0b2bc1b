import Glibc
import TestSupport
import Tidemark

/// What the driver starts a child with, as its arguments.
struct ChildOrder: Sendable {
    enum Role: String, Sendable {
        /// Serves until it is killed.
        case hub
        /// Writes and synchronises until it is killed.
        case storm
        /// Synchronises until nothing is left to be exchanged, and ends by itself.
        case rest
    }

    let role: Role
    /// Of the store.
    let directory: String
    let seed: Seed
    /// Which replica it is, from 0.
    let replica: Int
    /// How often it was started before. What is random in a life, but for the operations, follows
    /// from it.
    let life: UInt64
    /// The last operation that was acknowledged.
    let number: UInt64
    /// How many writes the operations had that were made in this store, up to that one.
    let writeCount: UInt64
    /// Of the proxy.
    let url: String
    let plantedBugs: PlantedBugs

    var arguments: [String] {
        [
            role.rawValue, directory, "\(seed)", "\(replica)", "\(life)", "\(number)",
            "\(writeCount)", url, "\(plantedBugs.rawValue)",
        ]
    }

    var options: StoreOptions {
        var options = StoreOptions(
            durability: .process, author: "\(role) \(replica)", segmentBytes: 1 << 20,
            historyVersions: life % 3 == 0 ? 2 : 0)
        options.plantedBugs = plantedBugs
        return options
    }

    var random: SeededGenerator {
        let lane = UInt64(replica + 1) &* 0xA24B_AED4_963E_E407
        return SeededGenerator(Seed(seed.rawValue ^ lane ^ (life &* 0x9FB2_1C65_1E98_DF25)))
    }
}

extension ChildOrder {
    /// nil if the arguments are not a child's.
    init?(_ arguments: [String]) {
        guard arguments.count == 9, let role = Role(rawValue: arguments[0]),
            let seed = Seed(arguments[2]), let replica = Int(arguments[3]), replica >= 0,
            let life = UInt64(arguments[4]), let number = UInt64(arguments[5]),
            let writeCount = UInt64(arguments[6]), let bugs = UInt32(arguments[8])
        else { return nil }
        self.init(
            role: role, directory: arguments[1], seed: seed, replica: replica, life: life,
            number: number, writeCount: writeCount, url: arguments[7],
            plantedBugs: PlantedBugs(rawValue: bugs))
    }
}

/// Ends this process when its standard input ends: the writing end is the driver's, and the system
/// closes it however the driver dies.
enum Leash {
    static func hold() {
        ThreadGroup.startDetached {
            var byte: UInt8 = 0
            while true {
                let count = unsafe read(STDIN_FILENO, &byte, 1)
                if count > 0 || (count < 0 && errno == EINTR) { continue }
                _exit(3)
            }
        }
    }
}
