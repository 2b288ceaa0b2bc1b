import TestSupport
import Tidemark

/// All that can be read of a store, as lines of text that people can compare.
enum StoreText {
    static func of(_ store: Store) throws -> String {
        var lines = ["store \(store.replicaID)"]
        for id in store.formerReplicaIDs { lines.append("  formerly \(id)") }
        for name in try store.datasetNamesForSync() {
            guard let dataset = try store.datasetForSync(name, creating: false) else { continue }
            try add(dataset, to: &lines)
        }
        for which in SystemDataset.allCases {
            guard let dataset = try store.existingSystemDataset(which) else { continue }
            lines.append("own \(which.rawValue)")
            for note in try dataset.records().collect() {
                lines.append("  \(text(note.key)): \(note.value.map { text($0) } ?? "nothing")")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func add(_ dataset: Dataset, to lines: inout [String]) throws {
        let knowledge = try dataset.knowledge()
        let lifecycle = knowledge.lifecycle
        lines.append("dataset \(dataset.name)\(lifecycle.isDeleted ? " (deleted)" : "")")
        lines.append("  count \(knowledge.syncCount), seen \(text(knowledge.vector))")
        lines.append("  since \(lifecycle.time), wiped \(text(lifecycle.wiped))")
        let forgotten = knowledge.forgotten
        if !forgotten.isEmpty {
            lines.append("  forgotten \(text(forgotten.vector)) until \(forgotten.time)")
        }
        for peer in try dataset.peers() where peer.isRetired {
            lines.append("  retired \(peer.replica)")
        }
        for dot in knowledge.vector.dots {
            let checkpoint = try dataset.checkpoint(for: dot.replica)
            guard checkpoint != PeerCheckpoint() else { continue }
            lines.append(
                "  peer \(dot.replica): pulled \(checkpoint.pulledThrough), pushed "
                    + "\(checkpoint.pushedThrough), has \(text(checkpoint.vector))")
        }
        guard try dataset.store.existingDataset(dataset.name) != nil else { return }
        // Of a record that was let go here alone, compaction leaves nothing at once.
        for record in try dataset.records(includingDeleted: true).collect()
        where !record.isDropped {
            lines.append("  \(text(record.key))")
            for version in try dataset.history(of: record.key) {
                lines.append("    " + text(version))
            }
        }
    }

    private static func text(_ record: Record) -> String {
        var words = [record.value.map { text($0) } ?? "deleted"]
        words.append("count \(record.syncCount)")
        words.append("dot \(record.version.dot.replica):\(record.version.dot.counter)")
        words.append("at \(record.version.time)")
        if !record.version.author.isEmpty { words.append("by \(record.version.author)") }
        if let expiresAt = record.expiresAt {
            words.append("expires \(HybridTime(milliseconds: expiresAt, counter: 0))")
        }
        if record.isDirty { words.append("unsent") }
        words.append("seen \(text(record.version.vector))")
        return words.joined(separator: ", ")
    }

    private static func text(_ vector: VersionVector) -> String {
        let dots = vector.dots.map { "\($0.replica):\($0.counter)" }
        return dots.isEmpty ? "nothing" : dots.joined(separator: " ")
    }

    /// Text where it is text, else the bytes in base 16.
    private static func text(_ bytes: [UInt8]) -> String {
        guard bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
            return "0x"
                + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
                .joined()
        }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }
}
