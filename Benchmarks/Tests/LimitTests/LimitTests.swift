import CLimits
import Foundation
import Testing

/// One limit at one size, as an argument of the test.
struct LimitCase: Sendable, CustomTestStringConvertible {
    let index: Int
    let name: String
    let size: Int

    var testDescription: String { "\(name) \(size)" }

    static let all: [LimitCase] = {
        var cases: [LimitCase] = []
        for index in 0... {
            guard let name = limit(at: index).name else { break }
            for size in sizes(at: index) {
                cases.append(LimitCase(index: index, name: String(cString: name), size: size))
            }
        }
        return cases
    }()
}

private func limit(at index: Int) -> limit_api {
    limit_table()[index]
}

private func sizes(at index: Int) -> [Int] {
    let sizes = limit(at: index).sizes
    return [sizes.0, sizes.1, sizes.2, sizes.3].prefix { $0 != 0 }.map { Int($0) }
}

/// Bytes of which each second block of 64 compresses to nothing.
private let pool: [UInt8] = {
    var random = SystemRandomNumberGenerator()
    return (0..<(64 << 10)).map { index in
        index / 64 % 2 == 0 ? 0 : UInt8.random(in: 0...255, using: &random)
    }
}()

private func text(_ result: limit_result) -> String {
    withUnsafeBytes(of: result.error) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

/// Serialized, because two limits at a time would need twice the memory and share the processor.
@Suite(.serialized)
struct LimitTests {
    @Test(arguments: LimitCase.all)
    func measuresAndCleansUp(_ each: LimitCase) throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "limits-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let run = try #require(limit(at: each.index).run)

        let result = run(directory.path, each.size, 0.01, pool, pool.count)

        #expect(text(result) == "")
        #expect(result.operations > 0)
        #expect(result.seconds > 0)
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(left == [])
    }

    @Test func eachLimitSaysWhatItMeasures() {
        let names = LimitCase.all.map(\.name)
        #expect(Set(names).count >= 15)
        for each in LimitCase.all {
            #expect(limit(at: each.index).what != nil, "\(each.name)")
        }
    }

    @Test func aMissingDirectoryIsAnErrorOfEachLimitThatNeedsAFile() throws {
        let needy: Set<String> = [
            "append-mapping", "append-write", "sequential-write-fdatasync", "append-fdatasync",
            "rewrite-fdatasync", "pread-cached", "open-close-file",
        ]
        for each in LimitCase.all where needy.contains(each.name) {
            let run = try #require(limit(at: each.index).run)
            let result = run("/does/not/exist", each.size, 0.01, pool, pool.count)
            #expect(result.operations == 0, "\(each.name)")
            #expect(text(result).contains("No such file"), "\(each.name)")
        }
    }
}
