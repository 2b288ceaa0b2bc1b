import Glibc
import Synchronization
import Tidemark

/// A call of the operating system that failed in a test's own housekeeping.
package struct FileFailure: Error, CustomStringConvertible {
    package let call: String
    package let path: String
    package let number: Int32

    init(_ call: String, _ path: String) {
        self.call = call
        self.path = path
        number = errno
    }

    package var description: String { "\(call) of \(path) failed with errno \(number)" }
}

/// What tests do to files behind a store's back: read them whole, damage them, copy them.
package enum Files {
    package static func read(_ path: String) throws -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileFailure("open", path) }
        defer { close(descriptor) }
        let size = lseek(descriptor, 0, SEEK_END)
        guard size >= 0 else { throw FileFailure("lseek", path) }
        var bytes = [UInt8](repeating: 0, count: size)
        var filled = 0
        while filled < size {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(
                    descriptor, buffer.baseAddress.map { unsafe $0 + filled }, size - filled, filled
                )
            }
            guard count > 0 else { throw FileFailure("pread", path) }
            filled += count
        }
        return bytes
    }

    /// Creates or replaces the file.
    package static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw FileFailure("open", path) }
        defer { close(descriptor) }
        try write(bytes, to: descriptor, at: 0, path)
    }

    /// Changes bytes in the middle of a file and leaves all others.
    package static func overwrite(_ bytes: [UInt8], in path: String, at offset: Int) throws {
        let descriptor = unsafe open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileFailure("open", path) }
        defer { close(descriptor) }
        try write(bytes, to: descriptor, at: offset, path)
    }

    package static func truncate(_ path: String, to size: Int) throws {
        guard unsafe Glibc.truncate(path, size) == 0 else { throw FileFailure("truncate", path) }
    }

    package static func remove(_ path: String) throws {
        guard unsafe unlink(path) == 0 else { throw FileFailure("unlink", path) }
    }

    package static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    package static func createDirectory(_ path: String) throws {
        guard unsafe mkdir(path, 0o755) == 0 else { throw FileFailure("mkdir", path) }
    }

    /// The names within, sorted, without "." and "..".
    package static func list(_ path: String) throws -> [String] {
        try SystemStorage().listDirectory(path).sorted()
    }

    /// Copies every file of a flat directory into a new one.
    package static func copyDirectory(_ source: String, to target: String) throws {
        try createDirectory(target)
        for name in try list(source) {
            try write(try read("\(source)/\(name)"), to: "\(target)/\(name)")
        }
    }

    /// Every file of a flat directory with its bytes, to see whether anything was changed.
    package static func contents(_ path: String) throws -> [String: [UInt8]] {
        var contents: [String: [UInt8]] = [:]
        for name in try list(path) { contents[name] = try read("\(path)/\(name)") }
        return contents
    }

    /// Removes a file or a directory with all that is in it; what cannot be removed stays.
    package static func removeTree(_ path: String) {
        if unsafe unlink(path) == 0 { return }
        for name in (try? list(path)) ?? [] { removeTree("\(path)/\(name)") }
        unsafe rmdir(path)
    }

    private static func write(
        _ bytes: [UInt8], to descriptor: Int32, at offset: Int, _ path: String
    ) throws {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe pwrite(
                    descriptor, buffer.baseAddress.map { unsafe $0 + written },
                    bytes.count - written, offset + written)
            }
            guard count > 0 else { throw FileFailure("pwrite", path) }
            written += count
        }
    }
}

/// A new directory that goes, with all that is in it, when the last reference to it goes.
package final class TemporaryDirectory: Sendable {
    package let path: String
    private let isKept = Atomic<Bool>(false)

    package init() throws {
        let base = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/tidemark-test-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw FileFailure("mkdtemp", base) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        if !isKept.load(ordering: .relaxed) { Files.removeTree(path) }
    }

    /// Has it stay for whoever wants to look at what is in it.
    package func keep() {
        isKept.store(true, ordering: .relaxed)
    }

    /// The path of something within.
    package subscript(name: String) -> String { "\(path)/\(name)" }
}
