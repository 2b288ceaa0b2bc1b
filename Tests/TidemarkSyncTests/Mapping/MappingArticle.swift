import Foundation

/// The article *Coming from Cognito Sync and DataStore*, taken apart, and what may be wrong in it.
struct MappingArticle {
    struct Row {
        let heading: String
        /// Theirs, ours, what differs, the tests.
        let cells: [String]

        var isWhole: Bool { cells.count == 4 && cells.allSatisfy { !$0.isEmpty } }

        /// What stands between backticks in a cell.
        func names(in cell: Int) -> [String] {
            guard cell < cells.count else { return [] }
            return cells[cell].split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .filter { $0.offset % 2 == 1 }.map { String($0.element) }
        }

        var place: String { "\(heading), \(cells.first ?? "no cells")" }
    }

    let rows: [Row]

    init(_ text: String) {
        var heading = ""
        var rows: [Row] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## ") { heading = String(line.dropFirst(3)) }
            guard line.hasPrefix("|"), !line.hasPrefix("| theirs "), !line.hasPrefix("| --- ")
            else { continue }
            let cells = line.dropFirst().split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            rows.append(Row(heading: heading, cells: cells.dropLast()))
        }
        self.rows = rows
    }

    // MARK: - Faults

    /// Names without a row, and rows of other names: one line for each.
    ///
    /// - Parameter names: by the heading of their table.
    func faults(of names: [String: [String]]) -> [String] {
        var faults: [String] = []
        for heading in Set(names.keys).union(rows.map(\.heading)).sorted() {
            let expected = Set(names[heading] ?? [])
            let found = rows.filter { $0.heading == heading }.flatMap { $0.names(in: 0) }
            for name in expected.subtracting(found).sorted() {
                faults.append("\(heading): no row for \(name)")
            }
            for name in Set(found).subtracting(expected).sorted() {
                faults.append("\(heading): a row for \(name), which is not in the list")
            }
            for name in expected where found.count(where: { $0 == name }) > 1 {
                faults.append("\(heading): several rows for \(name)")
            }
        }
        return faults
    }

    /// Rows that have no test, or name one that is none.
    ///
    /// - Parameter tests: "Suite.function" of all that there are.
    func faults(of tests: Set<String>) -> [String] {
        rows.flatMap { row -> [String] in
            guard row.isWhole, row.names(in: 0).count == 1 else {
                return ["\(row.place): the row is not whole"]
            }
            let named = row.names(in: 3)
            guard !named.isEmpty else { return ["\(row.place): the row has no test"] }
            return named.filter { !tests.contains($0) }.map { "\(row.place): no test \($0)" }
        }
    }

    /// Rows that name something as ours that is not declared so, labels included.
    func faults(of declarations: PublicNames) -> [String] {
        rows.flatMap { row -> [String] in
            let ours = row.names(in: 1)
            guard row.cells.count > 1, row.cells[1].hasPrefix("none") == ours.isEmpty else {
                return ["\(row.place): neither a name of ours nor none"]
            }
            let mentioned = row.names(in: 2).filter { name in
                name.first?.isUppercase == true && name.contains(".")
            }
            return (ours + mentioned).filter { !declarations.contains($0) }
                .map { "\(row.place): \($0) is not public, or not declared so" }
        }
    }
}

/// "Suite.function" of every test: a function behind `@Test`, in a type or an extension that begins
/// at the margin.
func testNames(in texts: [String]) -> Set<String> {
    let kinds: Set<Substring> = ["struct", "class", "extension", "actor"]
    var tests: Set<String> = []
    for text in texts {
        var suite = ""
        var isTest = false
        for line in text.split(separator: "\n") {
            let code = line.drop(while: \.isWhitespace)
            guard !code.hasPrefix("//") else { continue }
            let words = line.words
            if let first = line.first, !first.isWhitespace,
                let place = words.firstIndex(where: { kinds.contains($0) }), place + 1 < words.count
            {
                suite = String(words[place + 1])
            }
            if code.hasPrefix("@Test") { isTest = true }
            guard isTest, let place = words.firstIndex(of: "func"), place + 1 < words.count
            else { continue }
            tests.insert("\(suite).\(words[place + 1])")
            isTest = false
        }
    }
    return tests
}

extension Substring {
    /// Letters, digits and underscores that stand together.
    var words: [Substring] {
        split { !($0.isLetter || $0.isNumber || $0 == "_") }
    }
}
