import Tidemark
import TidemarkSync

/// Conflicts of all datasets, or of one: those that wait, and those that were settled here.
struct ConflictList: Sendable {
    enum State: String, CaseIterable, Sendable {
        case waiting
        case settled

        /// Where the store keeps them, under the names of their datasets.
        var home: SystemDataset { self == .waiting ? .pending : .conflicts }
    }

    let state: State
    /// nil for all.
    let dataset: String?
    /// The last dataset of the page before.
    let after: String?
    let limit: Int

    /// - Throws: `invalidParameter`, `resourceNotFound`.
    init(_ query: ConsoleQuery) throws(APIFailure) {
        state = try query.choice("state", default: State.waiting)
        dataset = try query.text("dataset") == nil ? nil : query.dataset()
        after = try query.datasetBefore()
        limit = try query.limit()
    }

    /// O(answer): datasets without any are not looked at.
    func answer(in store: Store) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var rows = 0
        var next: String?
        if let dataset {
            rows = try write(of: dataset, limit: limit, in: store, to: &answer)
        } else {
            var last = after
            while let name = try nextName(behind: last, in: store) {
                guard rows < limit else {
                    next = last
                    break
                }
                last = name
                let most = min(limit - rows, ConsoleLimits.conflictsOfDatasetMax)
                rows += try write(of: name, limit: most, in: store, to: &answer)
            }
        }
        answer.close("]")
        if let next { answer.add("next", text: next) }
        answer.close("}")
        return answer.bytes
    }

    /// The next dataset that has any in the list of the store.
    private func nextName(behind last: String?, in store: Store) throws -> String? {
        guard let home = try store.existingSystemDataset(state.home) else { return nil }
        // Behind a name stand bytes lower than any in a name.
        var from = last.map { Array($0.utf8) + [UInt8(ascii: " ")] }
        while let key = try home.keys(in: KeyRange(from: from), limit: 1).next() {
            let name = key.prefix { $0 > UInt8(ascii: " ") }
            if let text = String(validating: name, as: UTF8.self), !ConsoleNames.isOwn(text),
                ConsoleNames.isDatasetText(text)
            {
                return text
            }
            from = Array(name) + [UInt8(ascii: " ")]
        }
        return nil
    }

    private func write(
        of name: String, limit: Int, in store: Store, to answer: inout JSONAnswer
    ) throws -> Int {
        guard let dataset = try store.existingDataset(name) else { return 0 }
        switch state {
        case .waiting:
            let found = try dataset.pendingConflicts(limit: limit)
            for one in found {
                answer.open("{")
                one.write(to: &answer, valueBytesMax: ConsoleLimits.shownBytes)
                answer.close("}")
            }
            return found.count
        case .settled:
            let found = try dataset.settledConflicts(limit: limit)
            for one in found { one.write(to: &answer) }
            return found.count
        }
    }
}

extension PendingConflict {
    /// As members of an object that is open.
    func write(to answer: inout JSONAnswer, valueBytesMax: Int) {
        answer.add("dataset", text: conflict.dataset)
        answer.add("id", text: RecordReference(of: conflict.local).text)
        answer.add("key", shown: conflict.key, bytesMax: ConsoleLimits.shownBytes)
        answer.add("since", since.milliseconds)
        answer.add("peer", text: peer.description)
        answer.add("reason", text: reason.description)
        for (name, record) in [("local", conflict.local), ("remote", conflict.remote)] {
            answer.open("{", as: name)
            answer.addContent(of: record, valueBytesMax: valueBytesMax)
            answer.close("}")
        }
        switch conflict.ancestry {
        case .known(let ancestor):
            answer.add("ancestry", text: "known")
            answer.open("{", as: "ancestor")
            answer.addContent(of: ancestor, valueBytesMax: valueBytesMax)
            answer.close("}")
        case .nonexistent: answer.add("ancestry", text: "nonexistent")
        case .notKept: answer.add("ancestry", text: "notKept")
        }
    }
}

extension SettledConflict {
    func write(to answer: inout JSONAnswer) {
        answer.open("{")
        answer.add("dataset", text: dataset)
        answer.add("id", text: keyReference)
        answer.add("key", shown: key, bytesMax: ConsoleLimits.shownBytes)
        answer.add("time", time.milliseconds)
        answer.add("policy", text: policy.rawValue)
        answer.add("decision", text: decision.rawValue)
        if let peer { answer.add("peer", text: peer.description) }
        for (name, side) in [("local", local), ("remote", remote)] {
            answer.open("{", as: name)
            side.content.write(to: &answer)
            answer.addMembers(of: side.version)
            answer.close("}")
        }
        answer.open("{", as: "outcome")
        outcome.write(to: &answer)
        answer.close("}")
        answer.close("}")
    }

    /// Of the record as it is now: a key that is too long for a link has none here.
    private var keyReference: String {
        key.count <= ConsoleLimits.keyInLinkBytesMax ? RecordReference.key(key).text : ""
    }
}

extension SettledConflict.Content {
    fileprivate func write(to answer: inout JSONAnswer) {
        switch self {
        case .value(let bytes):
            answer.add("value", shown: bytes, bytesMax: ConsoleLimits.shownBytes)
        case .deleted: answer.add("isDeleted", true)
        case .leftOut(let byteCount): answer.add("leftOutBytes", byteCount)
        }
    }
}
