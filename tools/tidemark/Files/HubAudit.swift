import Glibc
import Tidemark

/// The audit file of a hub's console. It lies in the directory of the store without being part of
/// it, and goes along with the store into a backup and out of one: who must be able to say who
/// changed what needs it most when the disk is gone.
///
/// It is copied after the store. A hub has the line of an edit on disk before it makes the edit, so
/// no edit is in the copy without its line, also while the hub runs. What is cut off of a last line
/// that is just being written counts as no line.
enum HubAudit {
    /// As the hub calls it; a test holds the two against each other, since this command is also
    /// built without the hub.
    static let fileName = "console-audit.jsonl"
    private static let chunkBytes = 64 << 10

    /// Copies the file, if the store has one, over that of an earlier copy: whole and durable, or
    /// not at all. If it has none, one that was copied earlier stays.
    ///
    /// - Returns: how many bytes it has; nil if there is none.
    static func copy(from store: String, to directory: String) throws -> UInt64? {
        let source = "\(store)/\(fileName)"
        guard unsafe access(source, F_OK) == 0 else { return nil }
        let target = "\(directory)/\(fileName)"
        // Should nobody be left to remove it, the next backup does: by this ending.
        let temporary = "\(target).\(getpid()).new"
        // As private as the hub makes it.
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(target) }
        defer { close(descriptor) }
        do {
            let byteCount = try copy(source, to: descriptor)
            guard fsync(descriptor) == 0, unsafe rename(temporary, target) == 0 else {
                throw failure(target)
            }
            try SystemStorage().syncDirectory(directory)
            return byteCount
        } catch {
            _ = unsafe unlink(temporary)
            throw error
        }
    }

    private static func copy(_ source: String, to descriptor: Int32) throws -> UInt64 {
        let input = try InputFile(path: source)
        let output = OutputStream(descriptor: descriptor)
        var buffer = [UInt8](repeating: 0, count: chunkBytes)
        var byteCount: UInt64 = 0
        while true {
            let count = try input.read(into: &buffer, from: 0)
            if count == 0 { break }
            try output.write(Array(buffer[..<count]))
            byteCount += UInt64(count)
        }
        try output.flush()
        return byteCount
    }

    private static func failure(_ path: String) -> CommandFailure {
        CommandFailure(
            .inputOutput,
            "cannot write \(TerminalText.escaped(path)): \(systemMessage(errno)); the copy of the "
                + "store is there, without the newest lines of the console's audit file")
    }

    /// For people, of what was copied.
    static func line(_ byteCount: UInt64) -> String {
        "audit   \(Quantities.bytes(byteCount)) of \(fileName)"
    }
}
