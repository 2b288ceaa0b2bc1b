import Foundation
import TestSupport
import Testing

@testable import TidemarkHub

/// Streams into files.
struct FileTargetTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test("each document is a line, also behind one that a crash has torn")
    func lines() async throws {
        let path = "\(directory.path)/stream"
        let target = FileTarget(path: path)
        try await target.deliver(Array(#"{"a":1}"#.utf8), delivery: "1")
        try await target.deliver(Array(#"{"a":2}"#.utf8), delivery: "2")
        #expect(try Files.read(path) == Array("{\"a\":1}\n{\"a\":2}\n".utf8))
        try Files.write(Array("{\"a\":1}\n{\"a\"".utf8), to: path)
        try await target.deliver(Array(#"{"a":3}"#.utf8), delivery: "3")
        #expect(try Files.read(path) == Array("{\"a\":1}\n{\"a\"\n{\"a\":3}\n".utf8))
    }

    @Test("a file that was moved away is begun anew")
    func moved() async throws {
        let path = "\(directory.path)/stream"
        let target = FileTarget(path: path)
        try await target.deliver(Array("{}".utf8), delivery: "1")
        try Files.remove(path)
        try await target.deliver(Array("{}".utf8), delivery: "2")
        #expect(try Files.read(path) == Array("{}\n".utf8))
    }

    @Test("the directory of a file is found, which must be on disk with it")
    func directories() async throws {
        #expect(FileTarget.directory(of: "/a/b/c") == "/a/b")
        #expect(FileTarget.directory(of: "/a") == "/")
        #expect(FileTarget.directory(of: "a/b") == "a")
        #expect(FileTarget.directory(of: "a") == ".")
        // Nothing is made where there is none.
        let target = FileTarget(path: "\(directory.path)/none/stream")
        await #expect(throws: FileTargetFailure.self) {
            try await target.deliver(Array("{}".utf8), delivery: "1")
        }
    }

    @Test("deliveries at once are whole lines")
    func concurrent() async throws {
        let path = "\(directory.path)/stream"
        let target = FileTarget(path: path)
        let line = String(repeating: "x", count: 10_000)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { try await target.deliver(Array(line.utf8), delivery: "") }
            }
            try await group.waitForAll()
        }
        let lines = String(decoding: try Files.read(path), as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 20)
        #expect(lines.allSatisfy { $0 == line })
    }

    @Test("a file that cannot be written says so")
    func unwritable() async throws {
        let target = FileTarget(path: directory.path)
        await #expect(throws: FileTargetFailure.self) {
            try await target.deliver([], delivery: "1")
        }
    }

    @Test("on the standard output each document is a line, too, and what cannot be written says so")
    func standardOutput() async throws {
        let pipe = Pipe()
        let target = StandardOutputTarget(
            descriptor: pipe.fileHandleForWriting.fileDescriptor)
        try await target.deliver(Array(#"{"a":1}"#.utf8), delivery: "1")
        try await target.deliver(Array(#"{"a":2}"#.utf8), delivery: "2")
        let written = pipe.fileHandleForReading.availableData
        #expect(Array(written) == Array("{\"a\":1}\n{\"a\":2}\n".utf8))
        let none = StandardOutputTarget(descriptor: -1)
        await #expect(throws: FileTargetFailure.self) {
            try await none.deliver(Array("{}".utf8), delivery: "3")
        }
    }
}
