import TestSupport
import Testing

@testable import tidemark

@Suite struct TableTests {
    /// Runs the body with an output that goes to a file; returns what was written.
    private func written(_ body: (OutputStream) throws -> Void) throws -> String {
        let directory = try TemporaryDirectory()
        try Files.write([], to: directory["table"])
        let file = try WritableFile(directory["table"])
        let output = OutputStream(descriptor: file.descriptor)
        try body(output)
        try output.flush()
        return String(decoding: try Files.read(directory["table"]), as: UTF8.self)
    }

    @Test func alignsItsColumns() throws {
        let text = try written { output in
            let table = TableWriter([Column("NAME"), Column("SIZE", .right)], output: output)
            try table.add(["apple", "7"])
            try table.add(["漢字", "1,024"])
            try table.finish()
        }
        #expect(text == "NAME    SIZE\napple      7\n漢字   1,024\n")
    }

    @Test func withoutRowsThereIsNothing() throws {
        let text = try written { try TableWriter([Column("NAME")], output: $0).finish() }
        #expect(text == "")
    }

    @Test func noRowExceedsTheScreen() throws {
        var random = SeededGenerator(.drawn())
        for _ in 0..<60 {
            let columns = (0..<1 + random.below(8)).map { index in
                Column(
                    "C\(index)", random.oneIn(2) ? .left : .right,
                    flexibleDownTo: random.oneIn(2) ? 4 + random.below(8) : nil)
            }
            let columnsMax = 40 + random.below(60)
            // More rows than are looked at before the widths are settled, with longer cells late.
            let rows = (0..<random.below(400)).map { row in
                columns.map { _ in
                    String(
                        repeating: random.oneIn(9) ? "漢" : "x",
                        count: random.below(row > 300 ? 60 : 12))
                }
            }
            let text = try written { output in
                let table = TableWriter(columns, output: output, columnsMax: columnsMax)
                for row in rows { try table.add(row) }
                try table.finish()
            }
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            #expect(lines.count == (rows.isEmpty ? 0 : rows.count + 1))
            #expect(lines.allSatisfy { TerminalText.width(of: String($0)) <= columnsMax })
        }
    }

    /// Found at random: where every column is flexible, the last resort applies all the same.
    @Test func flexibleColumnsGiveWayBeyondTheirBoundAtLast() throws {
        let text = try written { output in
            let columns = (0..<8).map { Column("C\($0)", flexibleDownTo: 11) }
            let table = TableWriter(columns, output: output, columnsMax: 40)
            try table.add(columns.map { _ in String(repeating: "x", count: 30) })
            try table.finish()
        }
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 40 })
    }

    @Test func aLongNumberTakesRoomFromTheText() throws {
        let text = try written { output in
            let table = TableWriter(
                [Column("KEY", flexibleDownTo: 4), Column("SIZE", .right)], output: output,
                columnsMax: 20)
            for _ in 0..<200 { try table.add([String(repeating: "k", count: 30), "1"]) }
            try table.add([String(repeating: "k", count: 30), "1,000,000"])
            try table.finish()
        }
        #expect(text.hasSuffix("\nkkkkkkkk…  1,000,000\n"))
    }

    @Test(arguments: [
        (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_536, "1.5 KiB"),
        (1_048_575, "1023.9 KiB"), (1_048_576, "1.0 MiB"), (Int.max, "7.9 EiB"),
    ])
    func bytesForPeople(number: Int, expected: String) {
        #expect(Quantities.bytes(number) == expected)
    }

    @Test func numbersForPeople() {
        #expect(Quantities.grouped(0) == "0")
        #expect(Quantities.grouped(999) == "999")
        #expect(Quantities.grouped(1_234_567) == "1,234,567")
        #expect(Quantities.grouped(UInt64.max) == "18,446,744,073,709,551,615")
        #expect(Quantities.counted(1, "record") == "1 record")
        #expect(Quantities.clock(seconds: 3_723) == "1:02:03")
        #expect(Quantities.clock(seconds: 67) == "1:07")
    }

    @Test func theProgressBarFitsAndEnds() {
        let cases: [(UInt64, UInt64?, Int?)] = [
            (0, 0, 0), (0, 100, 0), (1, .max, 1), (50, 100, 1_000), (100, 100, 99_999_999),
            (200, 100, nil), (.max, nil, nil), (.max, nil, 5),
        ]
        for (bytes, total, items) in cases {
            let line = ProgressBar.line(
                "importing", bytes: bytes, total: total, items: items, elapsed: .seconds(3))
            #expect(TerminalText.width(of: line) <= 79, "\(line)")
        }
        #expect(
            ProgressBar.line(
                "importing", bytes: 25, total: 100, items: 600_000, elapsed: .seconds(2))
                == "importing [======>.................]  25%  300,000 lines/s  0:06 left")
        #expect(
            ProgressBar.line(
                "counting", bytes: 25, total: 100, items: 60, unit: "changes",
                elapsed: .seconds(2))
                == "counting [======>.................]  25%  30 changes/s  0:06 left")
    }

    /// The name of a dataset may come from a peer.
    @Test func theProgressBarTakesAnyName() {
        let name = "comparing \u{1B}[2J\u{202E}" + String(repeating: "long ", count: 40)
        for total in [nil, 100] as [UInt64?] {
            let line = ProgressBar.line(
                name, bytes: 25, total: total, items: nil, elapsed: .seconds(2))
            #expect(TerminalText.width(of: line) <= 79)
            #expect(!line.contains("\u{1B}") && !line.contains("\u{202E}"))
            #expect(line.hasPrefix("comparing "))
        }
    }
}
