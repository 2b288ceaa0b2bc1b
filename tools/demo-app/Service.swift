import Tidemark
import TidemarkSync

/// One of the demo's two services: it embeds a store, works on it alone, and now and then
/// meets the other one.
struct Service {
    static let characters = "characters"
    static let notes = "notes"

    let name: String
    let store: Store

    init(_ name: String, directory: String) throws {
        self.name = name
        store = try Store.open(
            at: "\(directory)/\(name)",
            // Superseded versions are kept, so that there is a history to show at the end.
            options: StoreOptions(durability: .process, author: name, historyVersions: 8))
    }

    /// Stores all records in batches, each of them atomic.
    func load(_ files: CharacterFiles) throws {
        for (name, entries) in [
            (Self.characters, files.characters), (Self.notes, files.notes),
        ] {
            let dataset = try store.dataset(name)
            var batch = WriteBatch()
            for entry in entries {
                batch.put(entry.value, for: entry.key, in: dataset)
                if batch.count == 1_000 {
                    try store.write(batch)
                    batch = WriteBatch()
                }
            }
            try store.write(batch)
        }
        try store.sync()
    }

    /// Reads a record, changes its text and writes it back.
    func edit(
        _ dataset: String, _ key: String, _ change: (String) -> String
    ) throws {
        let dataset = try store.dataset(dataset)
        guard let text = try dataset.text(key) else {
            throw DemoError("no record \(key) in \(dataset.name) of \(name)")
        }
        try dataset.put(change(text), for: key)
    }

    func text(_ dataset: String, _ key: String) throws -> String {
        try store.dataset(dataset).text(key) ?? "(none)"
    }

    /// How conflicts are settled: those of the characters by last writer wins, those of the notes
    /// by a merge of our own.
    static let settlements = [
        (dataset: characters, options: SyncOptions(policy: .lastWriterWins)),
        (dataset: notes, options: SyncOptions(policy: .custom { NotesMerge.settle($0) })),
    ]
}
