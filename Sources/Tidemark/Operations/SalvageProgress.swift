/// How far a repair has come: all files are read first, which is a half of the work, and what is
/// whole in them is written then, which is the other.
public struct RepairProgress: Hashable, Sendable {
    /// Of the files of the damaged store; each counts once for reading and once for writing.
    public let bytesDone: UInt64
    public let bytesTotal: UInt64
}

/// Tells it.
final class SalvageProgress {
    private let whoIsTold: ((RepairProgress) -> Void)?
    private let isWriting: Bool
    private var bytesOfFiles: UInt64 = 0
    private var bytesRead: UInt64 = 0

    /// - Parameter isWriting: whether anything will be written at all.
    init(_ tell: ((RepairProgress) -> Void)?, isWriting: Bool = true) {
        whoIsTold = tell
        self.isWriting = isWriting
    }

    /// What is to be read. A file that cannot be opened is no part of it.
    func begin(_ names: [String], in directory: String, _ storage: any Storage) {
        guard whoIsTold != nil else { return }
        for name in names {
            let file = try? storage.openFile("\(directory)/\(name)", .read)
            bytesOfFiles += (try? file?.size()) ?? 0
        }
    }

    func noteRead(_ byteCount: Int) {
        bytesRead = min(bytesRead + UInt64(byteCount), bytesOfFiles)
        tell(bytesRead)
    }

    func tellWriting(_ entries: Int, of entriesTotal: Int) {
        let fraction = min(1, Double(entries) / Double(max(1, entriesTotal)))
        tell(bytesOfFiles + UInt64(fraction * Double(bytesOfFiles)))
    }

    private func tell(_ bytesDone: UInt64) {
        let bytesTotal = isWriting ? 2 * bytesOfFiles : bytesOfFiles
        whoIsTold?(RepairProgress(bytesDone: min(bytesDone, bytesTotal), bytesTotal: bytesTotal))
    }
}
