import TestSupport
import Testing

@testable import tidemark

@Suite struct LineReaderTests {
    private func lines(of content: [UInt8]) throws -> [[UInt8]] {
        let directory = try TemporaryDirectory()
        try Files.write(content, to: directory["file"])
        var reader = LineReader(try InputFile(path: directory["file"]))
        var lines: [[UInt8]] = []
        while let range = try reader.next() {
            lines.append(Array(reader.buffer[range]))
            #expect(reader.lineNumber == lines.count)
        }
        #expect(reader.bytesRead == UInt64(content.count))
        return lines
    }

    /// Lines of every length around the size of the buffer, so that its edge falls everywhere.
    @Test func splitsAsASplitOfTheWholeWould() throws {
        var random = SeededGenerator(.drawn())
        for round in 0..<12 {
            var content: [UInt8] = []
            while content.count < 3 << 20 {
                let length =
                    random.oneIn(20)
                    ? (1 << 20) - 3 + random.below(6) : random.below(random.oneIn(3) ? 90_000 : 90)
                content += [UInt8](repeating: UInt8(ascii: "a") + UInt8(round), count: length)
                content.append(0x0A)
            }
            if round.isMultiple(of: 2) { content.removeLast() }
            var expected = content.split(separator: 0x0A, omittingEmptySubsequences: false)
            if content.last == 0x0A { expected.removeLast() }
            let found = try lines(of: content)
            #expect(found.count == expected.count)
            #expect(zip(found, expected).allSatisfy { Bytes.areEqual($0, Array($1)) })
        }
    }

    @Test func smallFiles() throws {
        #expect(try lines(of: []) == [])
        #expect(try lines(of: [0x0A]) == [[]])
        #expect(try lines(of: Array("a".utf8)) == [[0x61]])
        #expect(try lines(of: Array("a\n\nb\n".utf8)) == [[0x61], [], [0x62]])
        #expect(
            try lines(of: [0xEF, 0xBB, 0xBF, 0x61, 0x0A, 0xEF, 0xBB, 0xBF]) == [
                [0x61], [0xEF, 0xBB, 0xBF],
            ])
    }
}
