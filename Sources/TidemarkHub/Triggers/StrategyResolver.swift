import Tidemark
import TidemarkSync

/// Settles conflicts by the strategy that the settings give a pool, or one of its datasets.
struct StrategyResolver: ConflictResolver {
    let book: PoolBook
    let clock: any SyncEnvironment

    func decision(
        _ conflict: RecordConflict, _ context: UpdateContext
    ) async throws(APIFailure) -> ConflictDecision {
        switch book.behavior(of: context.pool).strategy(for: context.dataset) {
        case .reject:
            return .reject
        case .lastWriterWins(let usesDeviceDates):
            return Self.lastWriter(of: conflict, usesDeviceDates: usesDeviceDates)
        case .autoMerge(let rules):
            return Self.merged(conflict, by: rules, now: clock.now(), context)
        case .endpoint(let webhook):
            let question = Self.question(conflict, context)
            return try Self.decision(
                try await PoolTrigger.answer(of: webhook, to: question, "the conflict resolver"))
        case .closure(let handler):
            return try await decision(of: handler, conflict, context)
        }
    }

    /// What comes later wins, and that is what comes now; by the clocks of devices, the later date.
    /// A device that does not say when it wrote counts as writing now.
    static func lastWriter(
        of conflict: RecordConflict, usesDeviceDates: Bool
    ) -> ConflictDecision {
        if usesDeviceDates, let date = conflict.incomingMilliseconds,
            date < conflict.existingMilliseconds
        {
            return .keepExisting
        }
        return incoming(of: conflict)
    }

    private static func incoming(of conflict: RecordConflict) -> ConflictDecision {
        conflict.incoming.map { .put($0) } ?? .remove
    }

    // MARK: - Merging

    /// What is there is the earlier side, and what comes the later. What is no JSON is not merged,
    /// and the device is left to settle it.
    static func merged(
        _ conflict: RecordConflict, by rules: AutoMerge, now: UInt64, _ context: UpdateContext
    ) -> ConflictDecision {
        let texts = (incoming: conflict.incoming, existing: conflict.existing)
        // Both sides have come to the same: a list would have all of it twice.
        guard texts.incoming.map({ Array($0.utf8) }) != texts.existing.map({ Array($0.utf8) })
        else { return .keepExisting }
        if let incoming = texts.incoming, let existing = texts.existing {
            guard isJSON(incoming), isJSON(existing) else { return .reject }
        }
        let before = UInt64(clamping: conflict.existingMilliseconds)
        let existing = record(conflict.key, conflict.existing, writer: 1, at: before)
        let incoming = record(conflict.key, conflict.incoming, writer: 2, at: max(now, before + 1))
        let ancestor = conflict.ancestor.map { record(conflict.key, $0, writer: 3, at: 0) }
        let resolution = rules.resolution(
            of: Conflict(
                dataset: context.storeName, key: Array(conflict.key.utf8),
                ancestry: ancestor.map { .known($0) } ?? .notKept, local: existing,
                remote: incoming))
        switch resolution {
        case .keepLocal: return .keepExisting
        case .keepRemote: return self.incoming(of: conflict)
        case .value(let value):
            return String(validating: value, as: UTF8.self).map { .put($0) } ?? .reject
        case .delete: return .remove
        case .stop: return .reject
        }
    }

    private static func isJSON(_ text: String) -> Bool {
        (try? JSONValue(parsing: Array(text.utf8))) != nil
    }

    private static func record(
        _ key: String, _ value: String?, writer: UInt64, at milliseconds: UInt64
    ) -> Record {
        let dot = Dot(replica: ReplicaID(high: 0, low: writer), counter: 1)
        // Times have 48 bits.
        let time = HybridTime(milliseconds: min(milliseconds, 1 << 48 - 1), counter: 0)
        return Record(
            key: Array(key.utf8), value: value.map { Array($0.utf8) },
            version: Version(dot: dot, vector: VersionVector([dot]), time: time),
            syncCount: SyncCount(rawValue: 1), isDirty: false)
    }

    // MARK: - Asking

    private func decision(
        of handler: @escaping ConflictHandler, _ conflict: RecordConflict,
        _ context: UpdateContext
    ) async throws(APIFailure) -> ConflictDecision {
        let asked = HubConflict(
            identityPoolID: context.pool.text, identityID: context.identity.text,
            datasetName: context.dataset.text, key: conflict.key, incoming: conflict.incoming,
            existing: conflict.existing, ancestor: conflict.ancestor)
        let resolution: HubResolution?
        do {
            resolution = try await TimeLimit.run(PoolTrigger.limit, clock) {
                try await handler(asked)
            }
        } catch {
            throw APIFailure(.invalidTriggerOutput, "the conflict resolver failed")
        }
        switch resolution {
        case .resolve(let value)?: return .put(value)
        case .reject?: return .reject
        case .remove?: return .remove
        case nil:
            throw APIFailure(
                .invalidTriggerOutput, "the conflict resolver timed out after 5 seconds")
        }
    }

    static func question(_ conflict: RecordConflict, _ context: UpdateContext) -> [UInt8] {
        func text(_ text: String?) -> JSONValue {
            text.map { .string($0) } ?? .null
        }
        let document = JSONObject([
            ("identityPoolId", JSONValue.string(context.pool.text)),
            ("identityId", JSONValue.string(context.identity.text)),
            ("datasetName", JSONValue.string(context.dataset.text)),
            ("key", JSONValue.string(conflict.key)),
            ("incoming", text(conflict.incoming)),
            ("existing", text(conflict.existing)),
            ("ancestor", text(conflict.ancestor)),
        ])
        return JSONValue.object(document).encoded
    }

    /// - Throws: `invalidTriggerOutput` for what is no answer.
    static func decision(_ answer: [UInt8]) throws(APIFailure) -> ConflictDecision {
        let document = try? JSONValue(parsing: answer)
        switch (document?["action"]?.text, document?["value"]) {
        case ("RESOLVE"?, .string(let value)?)
        where value.unicodeScalars.count <= APINames.recordValueCharactersMax:
            return .put(value)
        case ("REJECT"?, _): return .reject
        case ("REMOVE"?, _): return .remove
        default:
            throw APIFailure(
                .invalidTriggerOutput,
                "the conflict resolver's answer is neither RESOLVE with a value, REJECT nor REMOVE")
        }
    }
}
