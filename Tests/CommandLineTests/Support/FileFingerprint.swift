import Foundation
import TestSupport
import Testing

/// All that can be told of a file from outside: its bytes, and when they were last written.
struct FileFingerprint: Equatable, CustomStringConvertible {
    let bytes: [UInt8]
    /// To the microsecond.
    let modified: Date

    init(_ path: String) throws {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        guard let modified = attributes[.modificationDate] as? Date else {
            throw UnexpectedOutput(description: "\(path) has no date")
        }
        self.modified = modified
        bytes = try Files.read(path)
    }

    var description: String {
        "\(bytes.count) bytes of \(modified.timeIntervalSince1970)"
    }

    /// Those of every file in a flat directory, by name.
    static func all(in directory: String) throws -> [String: FileFingerprint] {
        var all: [String: FileFingerprint] = [:]
        for name in try Files.list(directory) {
            all[name] = try FileFingerprint("\(directory)/\(name)")
        }
        return all
    }
}

/// Expects that a body leaves every file of a store as it is: names, sizes, bytes, and the times at
/// which they were written.
@discardableResult
func expectUnchanged<Result>(
    _ directory: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Result
) async throws -> Result {
    let before = try FileFingerprint.all(in: directory)
    let result = try await body()
    let after = try FileFingerprint.all(in: directory)
    #expect(before.keys.sorted() == after.keys.sorted(), sourceLocation: sourceLocation)
    for (name, print) in before.sorted(by: { $0.key < $1.key }) {
        guard let now = after[name], now != print else { continue }
        Issue.record(
            "\(name) changed: \(print) became \(now)", sourceLocation: sourceLocation)
    }
    return result
}
