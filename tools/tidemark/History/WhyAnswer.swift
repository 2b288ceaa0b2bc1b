import Tidemark

/// Why something is on disk, in words.
final class WhyAnswer {
    private let output: OutputStream
    private let isJSON: Bool
    private let path: String
    /// What would free what was shown, each once, in the order in which it was met.
    private var remedies: [String] = []

    init(_ output: OutputStream, isJSON: Bool, path: String) {
        self.output = output
        self.isJSON = isJSON
        self.path = TerminalText.escaped(path, columnsMax: 40)
    }

    // MARK: - Keys

    func write(_ versions: [KeptVersion], of key: [UInt8], in dataset: String) throws {
        if !isJSON {
            let name = "\(dataset)/\(TerminalText.escaped(key, columnsMax: 40))"
            let free = versions.filter { $0.reason == .nothing }.count
            try writeText(
                "\(name): \(Quantities.counted(versions.count, "version")) on disk, "
                    + (free == 0 ? "all of them needed" : "\(free) of no use to anyone"))
        }
        for version in versions {
            if isJSON {
                try output.write(line(version, key, dataset).line)
            } else {
                try writeText(
                    "\(version.version.dot)  \(Quantities.bytes(version.byteCount)) in "
                        + version.place)
                try writeText("    " + Self.text(of: version))
            }
            note(Self.remedy(for: version.reason, path))
        }
        if !isJSON { try output.writeLine() }
    }

    private func line(
        _ version: KeptVersion, _ key: [UInt8], _ dataset: String
    ) -> JSONLine {
        var line = JSONLine()
        line.add("dataset", dataset)
        line.add("key", key)
        line.add(version.version)
        line.add("syncCount", version.syncCount.rawValue)
        line.add("isDeleted", version.isDeletion)
        line.add("file", version.file)
        if let valueFile = version.valueFile { line.add("valueFile", valueFile) }
        line.add("bytes", version.byteCount)
        line.add("reason", Self.name(of: version.reason))
        if case .awaitedBy(let peers) = version.reason {
            line.add("peers", peers.map(\.description).joined(separator: " "))
        }
        return line
    }

    private static func name(of reason: KeptVersion.Reason) -> String {
        switch reason {
        case .current: "current"
        case .awaitedBy: "peerHorizon"
        case .unfinishedExchange: "unfinishedExchange"
        case .heldWrites: "heldWrites"
        case .unsent: "unsent"
        case .history: "retention"
        case .ancestor: "unsynchronisedChange"
        case .nothing: "none"
        }
    }

    private static func text(of version: KeptVersion) -> String {
        switch version.reason {
        case .current: "the value that readers see"
        case .awaitedBy(let peers):
            "a deletion that \(Self.list(peers)) may not have heard of"
        case .unfinishedExchange: "a deletion of an exchange that has not ended"
        case .heldWrites: "a deletion, and a write to this dataset is held for its date"
        case .unsent: "a deletion that no peer has yet"
        case .history:
            version.isDeletion
                ? "a deletion within the history that is kept"
                : "superseded, and within the history that is kept"
        case .ancestor: "what a peer has, under a change that no peer has yet"
        case .nothing: "nothing needs it: it waits for a merge of its file"
        }
    }

    /// Up to three of them by name.
    private static func list(_ peers: [ReplicaID]) -> String {
        let names = peers.prefix(3).map(\.shortDescription).joined(separator: ", ")
        return peers.count > 3 ? "\(names) and \(peers.count - 3) more" : names
    }

    private static func remedy(for reason: KeptVersion.Reason, _ path: String) -> String? {
        switch reason {
        case .current: nil
        case .awaitedBy: "exchange with the peers that lack it, or retire those that are gone"
        case .unfinishedExchange: "repeat the exchange that was broken off"
        case .heldWrites: "release or discard the writes that 'tidemark quarantine list' shows"
        case .unsent: "exchange with any peer"
        case .history: "ask for less history ('tidemark compact --history')"
        case .ancestor: "exchange with a peer, so that the newer change is synchronised"
        case .nothing: "'tidemark compact \(path)', or wait until segments are merged"
        }
    }

    private func note(_ remedy: String?) {
        guard let remedy, !remedies.contains(remedy) else { return }
        remedies.append(remedy)
    }

    func writeRemedies() throws {
        guard !isJSON, !remedies.isEmpty else { return }
        try output.writeLine("What would free it:")
        for remedy in remedies { try writeText("- \(remedy)") }
    }

    private func writeText(_ text: String) throws {
        for (number, line) in lines(of: text).enumerated() {
            try output.writeLine((number == 0 ? "" : "      ") + line)
        }
    }

    private func lines(of text: String) -> [String] {
        let room = output.columns - 6
        var lines: [String] = []
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            let joined = (lines.last.map { "\($0) " } ?? "") + word
            if lines.isEmpty || TerminalText.width(of: joined) > room {
                lines.append(TerminalText.truncated(String(word), to: room))
            } else {
                lines[lines.count - 1] = joined
            }
        }
        return lines
    }

    // MARK: - Files

    func write(file: String, of store: Store) throws {
        if file.hasSuffix(".val") { return try write(valueFile: file, of: store) }
        let survey = try store.spaceSurvey()
        guard let segment = survey.segments.first(where: { $0.file == file }) else {
            throw CommandFailure(
                .negative, "\(file) is no part of the store any more; the next writer removes it")
        }
        let place = try store.place(ofSegment: file)
        if isJSON { return try output.write(line(segment, place).line) }
        try writeText(
            "\(file): \(Quantities.bytes(segment.fileBytes)) with "
                + "\(Quantities.counted(segment.entryCount, "version"))")
        let found = segment.found
        for (count, what) in [
            (found.live, "live: what readers see, and what the store itself keeps"),
            (found.deletions, "deletions that are the last word on their key"),
            (found.superseded, "superseded by newer versions"),
            (found.ownerless, "of datasets that were deleted"),
        ] where count > 0 {
            let share = 100 * Double(count) / Double(max(1, found.all))
            let mark = segment.isExact ? "" : "~"
            try writeText("  \(mark)\(Int(share.rounded()))% \(what)")
        }
        noteRemedies(segment, place, try store.peerLags(datasetsMax: 1_000, changesMax: 100_000))
        try output.writeLine()
        try writeRemedies()
    }

    private func noteRemedies(
        _ segment: SpaceSurvey.Segment, _ place: SegmentPlace?,
        _ lags: (peers: [PeerLag], isWhole: Bool)
    ) {
        let found = segment.found
        if !segment.isSealed {
            note("a log goes when it has been sealed: when it is full, or with a compaction")
        }
        if found.superseded > 0 || found.ownerless > 0 {
            note(Self.remedy(for: .nothing, path))
        }
        if let place, place.run > 0, found.superseded > 0 {
            note(
                "what superseded it may lie in any of the \(place.run) newer runs: they must be "
                    + "merged with this one")
        }
        let waiting = lags.peers.filter { $0.tombstonesHeld > 0 }.map(\.replica)
        if found.deletions > 0, !waiting.isEmpty {
            note("an exchange with \(Self.list(waiting)), or retiring what is gone of them")
        }
    }

    private func line(_ segment: SpaceSurvey.Segment, _ place: SegmentPlace?) -> JSONLine {
        var line = JSONLine()
        line.add("file", segment.file)
        line.add("fileBytes", segment.fileBytes)
        line.add("versions", segment.entryCount)
        line.add("live", segment.found.live)
        line.add("deletions", segment.found.deletions)
        line.add("superseded", segment.found.superseded)
        line.add("ownerless", segment.found.ownerless)
        line.add("isExact", segment.isExact)
        if let place {
            line.add("run", place.run)
            line.add("runs", place.runCount)
        }
        return line
    }

    private func write(valueFile file: String, of store: Store) throws {
        let users = try store.segments(naming: file)
        guard let whole = try store.usage().valueFiles.first(where: { $0.file == file }) else {
            throw CommandFailure(
                .negative, "\(file) is no part of the store any more; the next writer removes it")
        }
        if isJSON {
            for user in users {
                var line = JSONLine()
                line.add("file", file)
                line.add("fileBytes", whole.fileBytes)
                line.add("segment", user.file)
                line.add("values", user.valueCount)
                line.add("usedBytes", user.usedBytes)
                try output.write(line.line)
            }
            return
        }
        try writeText(
            "\(file): \(Quantities.bytes(whole.fileBytes)), of which "
                + "\(Quantities.bytes(whole.usedBytes)) are values of versions that are kept")
        for user in users {
            try writeText(
                "  \(Quantities.counted(user.valueCount, "value")) of \(user.file), "
                    + Quantities.bytes(user.usedBytes))
        }
        note("merging the segments that name it, once less than a half of it is used")
        try output.writeLine()
        try writeRemedies()
    }
}

extension KeptVersion {
    /// The log or segment that it lies in, and the value file if its value lies apart.
    var place: String { valueFile.map { "\(file) and \($0)" } ?? file }
}
