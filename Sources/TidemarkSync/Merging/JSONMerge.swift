/// Merges two documents, of which one counts as the earlier. Recurses as deep as they are.
struct JSONMerge {
    private let sets: Set<JSONPath>
    private let earlierSide: MergeReport.Side
    private(set) var notes: MergeNotes
    /// The names of the members stepped into.
    private var path: [String] = []

    init(sets: Set<JSONPath>, earlierSide: MergeReport.Side, notes: MergeNotes = MergeNotes()) {
        self.sets = sets
        self.earlierSide = earlierSide
        self.notes = notes
    }

    private var laterSide: MergeReport.Side { earlierSide == .local ? .remote : .local }

    private var isSet: Bool { !sets.isEmpty && sets.contains(JSONPath(path)) }

    // MARK: - Three-way

    /// The changes of both since the ancestor; nil stands for a member that is not there.
    ///
    /// Time is linear in the bytes of the three, times the depth.
    mutating func merge(
        _ ancestor: JSONValue?, _ earlier: JSONValue?, _ later: JSONValue?
    ) -> JSONValue? {
        if earlier == later || later == ancestor { return earlier }
        if earlier == ancestor { return later }
        switch (earlier, later) {
        case (.object(let earlier)?, .object(let later)?):
            guard case .object(let ancestor)? = ancestor else {
                return .object(merge(JSONObject(), earlier, later))
            }
            return .object(merge(ancestor, earlier, later))
        case (.array(let earlier)?, .array(let later)?):
            return .array(merge(ancestor?.elements ?? [], earlier, later))
        case (let earlier?, nil):
            // Removed by the later writer, changed by the earlier: the change stays.
            notes.note(nil, of: laterSide, at: path)
            return earlier
        case (_, let later):
            notes.note(earlier, of: earlierSide, at: path)
            return later
        }
    }

    /// Member by member. The names keep the earlier one's order; then come the later one's own.
    private mutating func merge(
        _ ancestor: JSONObject, _ earlier: JSONObject, _ later: JSONObject
    ) -> JSONObject {
        let ancestors = ancestor.valuesByName
        let laters = later.valuesByName
        var earlierNames: Set<ExactText> = []
        var members: [JSONObject.Member] = []
        for member in earlier.members {
            let name = ExactText(member.name)
            earlierNames.insert(name)
            step(into: member.name, &members) { merge in
                merge.merge(ancestors[name], member.value, laters[name])
            }
        }
        for member in later.members where !earlierNames.contains(ExactText(member.name)) {
            step(into: member.name, &members) { merge in
                merge.merge(ancestors[ExactText(member.name)], nil, member.value)
            }
        }
        return JSONObject(checked: members)
    }

    private mutating func step(
        into name: String, _ members: inout [JSONObject.Member],
        _ merged: (inout JSONMerge) -> JSONValue?
    ) {
        path.append(name)
        if let value = merged(&self) {
            members.append(JSONObject.Member(name: name, value: value))
        }
        path.removeLast()
    }

    private mutating func merge(
        _ ancestor: [JSONValue], _ earlier: [JSONValue], _ later: [JSONValue]
    ) -> [JSONValue] {
        let isSet = isSet
        let merge = ListMerge(
            ancestor: isSet ? ancestor.withoutRepetitions : ancestor,
            earlier: isSet ? earlier.withoutRepetitions : earlier,
            later: isSet ? later.withoutRepetitions : later)
        if merge.losesOrder, !isSet {
            notes.note(.array(later), of: laterSide, at: path)
        }
        return merge.elements
    }

    // MARK: - AppSync

    mutating func appSync(
        _ documents: (earlier: JSONValue, later: JSONValue), isEarlierServer: Bool
    ) -> JSONValue {
        isEarlierServer
            ? appSync(documents.earlier, documents.later, incomingSide: laterSide)
            : appSync(documents.later, documents.earlier, incomingSide: earlierSide)
    }

    private mutating func appSync(
        _ server: JSONValue, _ incoming: JSONValue, incomingSide: MergeReport.Side
    ) -> JSONValue {
        switch (server, incoming) {
        case (.null, let incoming):
            return incoming
        case (.object(let server), .object(let incoming)):
            let incomings = incoming.valuesByName
            var serverNames: Set<ExactText> = []
            var members: [JSONObject.Member] = []
            for member in server.members {
                serverNames.insert(ExactText(member.name))
                step(into: member.name, &members) { merge in
                    guard let value = incomings[ExactText(member.name)] else {
                        return member.value
                    }
                    return merge.appSync(member.value, value, incomingSide: incomingSide)
                }
            }
            members += incoming.members.filter { !serverNames.contains(ExactText($0.name)) }
            return .object(JSONObject(checked: members))
        case (.array(let server), .array(let incoming)):
            return .array(isSet ? (server + incoming).withoutRepetitions : server + incoming)
        default:
            if incoming != server {
                notes.note(incoming, of: incomingSide, at: path)
            }
            return server
        }
    }
}

extension [JSONValue] {
    /// Each element once, where it stands first.
    var withoutRepetitions: [JSONValue] {
        var seen: Set<JSONValue> = []
        return filter { seen.insert($0).inserted }
    }
}
