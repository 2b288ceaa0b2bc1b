import Glibc
import TestSupport
import Tidemark

/// Backups of the store into one place, beside everything else that is done to it, and stores that
/// are restored from them.
struct SoakBackup: Sendable {
    private let path: String

    /// - Parameter directory: of the store; the backup lies beside it.
    init(_ directory: String) {
        path = directory + ".backup"
    }

    /// One after the other: each is whole, and of one moment.
    func repeatedly(_ store: Store, until stop: Double, _ counts: SoakCounts) throws {
        while SoakRun.now() < stop {
            try store.backup(to: path)
            try withCopy(at: path) { copy in
                let damages = try copy.verify(threads: 1).damages
                try require(damages.isEmpty, "the backup is damaged: \(damages)")
                try SoakBank.check(copy)
                if let shared = try copy.existingDataset(SoakWriter.sharedName) {
                    try SoakReader.checkStamps(shared.records().collect())
                }
            }
            counts.note(operations: 1)
            usleep(200_000)
        }
    }

    /// While nobody writes: the backup has everything, and so has what is restored from it.
    func check(
        _ store: Store, _ writers: [SoakWriter], _ random: inout SeededGenerator
    ) throws {
        try store.backup(to: path, linksFiles: random.oneIn(2))
        try withCopy(at: path) { copy in
            for writer in writers { try writer.checkAll(copy) }
            try SoakBank.check(copy)
        }
        guard random.oneIn(3) else { return }
        let restored = path + ".restored"
        Files.removeTree(restored)
        try Store.restore(from: path, to: restored, linksFiles: random.oneIn(2))
        try withCopy(at: restored) { copy in
            for writer in writers { try writer.checkAll(copy) }
            try SoakBank.check(copy)
        }
        Files.removeTree(restored)
    }

    private func withCopy(at path: String, _ body: (Store) throws -> Void) throws {
        let copy = try Store.open(at: path, options: StoreOptions(isReadOnly: true))
        try body(copy)
        try copy.close()
    }
}
