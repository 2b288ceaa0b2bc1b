import Tidemark

/// What an update comes to: decided by what is there, before anything is written.
struct UpdatePlan: Sendable {
    /// The store's sync count of the dataset by which it was decided; it must still be that when
    /// the plan is carried out.
    let position: UInt64
    /// In the order in which they are to be written, each of another key.
    let writes: [PlannedWrite]
}

/// One record that is to be written.
struct PlannedWrite: Hashable, Sendable {
    let key: [UInt8]
    /// nil to remove it.
    let value: [UInt8]?
    let deviceMilliseconds: Int64?
}

/// How an update stands to what is there.
enum UpdateFinding: Sendable {
    /// It was carried out before: its answer was lost, and the client sends it again.
    case repeated
    /// Records were changed by others, and nobody has decided yet what is to become of them.
    case conflicts([RecordConflict])
    case plan(UpdatePlan)
}

/// Compares an update with what is there. Nothing is read here: the same finds always the same.
struct UpdateComparison {
    let request: UpdateRequest
    /// The store's sync count of the dataset; 0 for one that nobody has made yet.
    let position: UInt64
    let map: CountMap
    /// The record of each patch, or its tombstone; nil if there is neither.
    let present: [Record?]
    /// What is to become of the records that are in conflict, by their keys.
    let decisions: [[UInt8]: ConflictDecision]
    /// What the client had changed, if that is known still.
    let ancestor: (Record, RecordPatch) throws -> Record?
    /// Whether a record was written by this very call, when it came before.
    let isOfCall: (Record) throws -> Bool

    /// - Throws: `resourceConflict` if the dataset has changed since the client listed it, or a
    ///   conflict is decided against the client.
    func finding() throws -> UpdateFinding {
        guard request.session.position == position else {
            guard try wasCarriedOut() else { throw changedFailure() }
            return .repeated
        }
        var conflicts: [RecordConflict] = []
        var writes: [PlannedWrite] = []
        for (patch, record) in zip(request.patches, present) {
            guard count(of: record) != patch.count else {
                writes.append(patch.write(patch.value))
                continue
            }
            switch decisions[patch.key] {
            case nil: conflicts.append(try conflict(patch, record))
            case .put(let text)?: writes.append(patch.write(Array(text.utf8)))
            case .remove?: writes.append(patch.write(nil))
            case .keepExisting?: break
            case .reject?: throw staleFailure(patch, record)
            }
        }
        guard conflicts.isEmpty else { return .conflicts(conflicts) }
        return .plan(UpdatePlan(position: position, writes: writes))
    }

    /// The API's count of a record; 0 if there is none.
    private func count(of record: Record?) -> UInt64 {
        record.map { map.count(at: $0.syncCount.rawValue) } ?? 0
    }

    /// Whether the same call has come before and was carried out, and nobody has changed any of its
    /// records since. What it did not write, because a trigger or a strategy had it so, is as it
    /// was when the client listed it.
    private func wasCarriedOut() throws -> Bool {
        var isKnown = false
        for record in present {
            guard let record, record.syncCount.rawValue > request.session.position else { continue }
            guard try isOfCall(record) else { return false }
            isKnown = true
        }
        return isKnown
    }

    private func conflict(
        _ patch: RecordPatch, _ found: Record?
    ) throws -> RecordConflict {
        // The client knew a record that is not there, not even as a tombstone; or what is there is
        // no text that anybody who decides could be shown.
        guard let record = found, record.value.map(JSONBounds.isUTF8) ?? true else {
            throw staleFailure(patch, found)
        }
        return RecordConflict(
            key: String(decoding: patch.key, as: UTF8.self),
            incoming: patch.value.map { String(decoding: $0, as: UTF8.self) },
            existing: record.valueText, ancestor: try ancestor(record, patch)?.valueText,
            incomingMilliseconds: patch.deviceMilliseconds,
            existingMilliseconds: Int64(clamping: record.version.time.milliseconds))
    }

    private func staleFailure(_ patch: RecordPatch, _ record: Record?) -> APIFailure {
        Self.stale(
            String(decoding: patch.key, as: UTF8.self), count(of: record), patch.count)
    }

    /// Names the first key that the client knows otherwise, if there is any.
    private func changedFailure() -> APIFailure {
        for (patch, record) in zip(request.patches, present) where count(of: record) != patch.count
        {
            return staleFailure(patch, record)
        }
        return Self.changed
    }

    /// In the words of the real service, which clients are known to look for.
    static func stale(_ key: String, _ count: UInt64, _ known: UInt64) -> APIFailure {
        APIFailure(
            .resourceConflict, "Current SyncCount for: \(key) is: \(count) not: \(known)")
    }

    static var changed: APIFailure {
        APIFailure(
            .resourceConflict,
            "the dataset has changed since ListRecords; list it again, then update it")
    }
}

extension RecordPatch {
    fileprivate func write(_ value: [UInt8]?) -> PlannedWrite {
        PlannedWrite(key: key, value: value, deviceMilliseconds: deviceMilliseconds)
    }
}
