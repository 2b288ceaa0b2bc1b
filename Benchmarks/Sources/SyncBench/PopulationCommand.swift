import ArgumentParser
import Foundation
import Tidemark

/// Fills the store of a hub with identities, three datasets of ten records each, as they lie there
/// after the calls of as many devices: to measure how a hub starts and what it takes.
struct PopulationCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "population",
        abstract: "Fill the store of a hub; the benchmark of the hub starts this.",
        shouldDisplay: false)

    @Argument var store: String
    @Option var identities: Int
    @Option var pool: String

    func run() async throws {
        let store = try Store.open(at: store, options: StoreOptions(durability: .memory))
        let facts: [String: Any] = [
            "pool": pool, "created": 0, "modified": 0, "logins": [String](), "isEnabled": true,
        ]
        let encoded = Array(try JSONSerialization.data(withJSONObject: facts))
        let directory = try store.dataset("hub:identities")
        for number in 0..<identities {
            let digits = String(number, radix: 16)
            let id =
                "us-east-1:00000000-0000-4000-8000-"
                + String(repeating: "0", count: 12 - digits.count) + digits
            var batch = WriteBatch()
            batch.put(encoded, for: Array(id.utf8), in: directory)
            for name in 0..<3 {
                let dataset = try store.dataset("\(id):d\(name)")
                for key in 0..<10 {
                    batch.put("value \(key) of \(number)", for: "key \(key)", in: dataset)
                }
            }
            try store.write(batch)
        }
        try store.sync()
        try store.close()
    }
}
