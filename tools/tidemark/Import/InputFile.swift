import Glibc

/// A file, or standard input, read from start to end.
final class InputFile {
    /// Standard input, by the custom of most commands.
    static let standardInputPath = "-"

    let name: String
    /// Bytes in the file; nil if it is no regular file, so that nobody can tell.
    let bytesTotal: UInt64?
    private let descriptor: Int32

    init(path: String) throws {
        if path == Self.standardInputPath {
            name = "standard input"
            descriptor = 0
        } else {
            name = TerminalText.escaped(path)
            descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        }
        guard descriptor >= 0 else {
            throw CommandFailure(
                .noInput, "cannot open \(name): \(systemMessage(errno)); check the path")
        }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            throw CommandFailure(.inputOutput, "cannot read \(name): \(systemMessage(errno))")
        }
        guard status.st_mode & S_IFMT != S_IFDIR else {
            throw CommandFailure(.noInput, "\(name) is a directory; name a file")
        }
        bytesTotal = status.st_mode & S_IFMT == S_IFREG ? UInt64(max(0, status.st_size)) : nil
    }

    deinit {
        if descriptor > 0 {
            close(descriptor)
        }
    }

    /// Reads into the part of the array from `start` on; returns how many bytes, 0 at the end.
    func read(into buffer: inout [UInt8], from start: Int) throws -> Int {
        while true {
            // The pointer is used only during the call, and within the array's bounds.
            let count = unsafe buffer.withUnsafeMutableBytes { bytes in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
                return unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
            }
            if count >= 0 { return count }
            guard errno == EINTR else {
                throw CommandFailure(
                    .inputOutput,
                    "cannot read \(name): \(systemMessage(errno)); check the disk it is on")
            }
        }
    }

    /// All that is left, if it is not more than the given number of bytes.
    func readAll(bytesMax: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var count = 0
        while true {
            if bytes.count == count {
                bytes += [UInt8](repeating: 0, count: max(4_096, min(count, bytesMax + 1 - count)))
            }
            let readCount = try read(into: &bytes, from: count)
            count += readCount
            if readCount == 0 { break }
            guard count <= bytesMax else {
                throw CommandFailure(
                    .usage,
                    "\(name) holds more than \(Quantities.bytes(bytesMax)); "
                        + "keep it in a file and store the file's path")
            }
        }
        bytes.removeSubrange(count...)
        return bytes
    }
}
