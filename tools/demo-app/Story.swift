import Tidemark
import TidemarkSync

/// What happens to the two services, told as it happens.
struct Story {
    /// A character whose published name is misspelt, and can never be corrected.
    private static let bracket = "FE18"
    private static let euro = "20AC"

    let north: Service
    let south: Service
    let files: CharacterFiles

    func tell(meeting: some Meeting) async throws {
        try importApart()
        heading("First meeting, \(meeting.way): equal records are no conflict")
        _ = try await meet(meeting)
        try await editApart()
        try await settle(meeting)
        try compare()
        try north.store.close()
        try south.store.close()
    }

    private func importApart() throws {
        heading("Two services, a store each, both import the same files")
        for service in [north, south] {
            let clock = ContinuousClock()
            let time = try clock.measure { try service.load(files) }
            print(
                "\(service.name): \(files.characters.count) characters and notes on "
                    + "\(files.notes.count) of them in \(seconds(time)) s, "
                    + "replica \(service.store.replicaID.shortDescription)")
        }
    }

    private func editApart() async throws {
        heading("Apart again, both change the same two records, south a moment later")
        try edit(north, notes: { $0 + ["* printed on the northern price tags"] }) {
            $0.hasSuffix("BRAKCET") ? $0.dropLast(7) + "BRACKET" : $0
        }
        // Writes of one millisecond are ordered, too, but not by what a person would call later.
        try await Task.sleep(for: .milliseconds(20))
        let euroNote = "* euro, not ecu"
        try edit(
            south,
            notes: { $0.filter { $0 != euroNote } + ["* missing from the southern keyboards"] }
        ) {
            $0.hasSuffix("BRAKCET") ? $0 + " (SIC)" : $0
        }
        try show()
    }

    /// Changes the notes on the euro sign, and each field of the bracket's line.
    private func edit(
        _ service: Service, notes: ([String]) -> [String], field: (String) -> String
    ) throws {
        try service.edit(Service.notes, Self.euro) { text in
            notes(text.split(separator: "\n").map(String.init)).joined(separator: "\n")
        }
        try service.edit(Service.characters, Self.bracket) { line in
            line.split(separator: ";", omittingEmptySubsequences: false)
                .map { field(String($0)) }.joined(separator: ";")
        }
    }

    private func settle(_ meeting: some Meeting) async throws {
        heading("Second meeting: the conflicts are settled")
        let conflicts = try await meet(meeting)
        guard conflicts == 2 else {
            throw DemoError("\(conflicts) conflicts were settled, and 2 were made")
        }
        try show()
        guard try south.text(Service.characters, Self.bracket).contains("(SIC)") else {
            throw DemoError("the later write to \(Self.bracket) did not win")
        }
        let notes = try south.text(Service.notes, Self.euro)
        guard notes.contains("northern"), notes.contains("southern"), !notes.contains("ecu") else {
            throw DemoError("the merge of \(Self.euro) lost what a side did")
        }
    }

    private func compare() throws {
        heading("Both stores are equal")
        for name in [Service.characters, Service.notes] {
            let ours = try north.store.dataset(name).digest()
            let theirs = try south.store.dataset(name).digest()
            print("\(padded(name, 12))north \(ours)")
            print("\(padded("", 12))south \(theirs)")
            guard ours == theirs else { throw DemoError("the digests of \(name) differ") }
        }
    }

    /// Returns how many conflicts were settled.
    private func meet(_ meeting: some Meeting) async throws -> Int {
        let steps = try await meeting.meet(north, south)
        for (service, results) in steps {
            for result in results { tell(result, of: service) }
        }
        return steps.reduce(0) { $1.results.reduce($0) { $0 + $1.conflicts } }
    }

    private func tell(_ result: SyncResult, of service: Service) {
        print(
            "\(padded(service.name, 7))\(padded(result.dataset, 12))"
                + "pulled \(padded(String(result.pulled), 7))"
                + "pushed \(padded(String(result.pushed), 7))"
                + "conflicts \(padded(String(result.conflicts), 3))"
                + "\((result.bytesReceived + result.bytesSent + 1_023) / 1_024) KiB")
        for settled in result.settled {
            let key = String(decoding: settled.key, as: UTF8.self)
            print("       settled U+\(key): \(settled.decision.rawValue)")
        }
    }

    /// Both versions of both records.
    private func show() throws {
        for (dataset, key) in [
            (Service.characters, Self.bracket), (Service.notes, Self.euro),
        ] {
            for service in [north, south] {
                print("\(service.name) has U+\(key) in \(dataset):")
                for line in try service.text(dataset, key).split(separator: "\n") {
                    print("    " + (line.count > 76 ? line.prefix(75) + "…" : line))
                }
            }
        }
    }

    private func heading(_ text: String) {
        print("\n== \(text)")
    }

    private func padded(_ text: String, _ columns: Int) -> String {
        text + String(repeating: " ", count: max(0, columns - text.count))
    }

    /// With one digit behind the point.
    private func seconds(_ time: Duration) -> String {
        let tenths = Int((time / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
