import Tidemark
import TidemarkSync

// Edits. What is written goes the way of a replica's push: the identity that it belongs to is held,
// its limits are kept, and streams, devices and counts hear of it. The audit file has each edit
// twice, when it was asked for and what came of it: an edit that cannot be noted is not made.

extension Console {
    func edit(_ call: ConsoleCall) async throws(APIFailure) -> [UInt8] {
        let edit = try ConsoleEdit(call)
        var entry = ConsoleAudit.Entry(
            edit, call, id: ConsoleAudit.drawnID(), now: parts.clock.now())
        try await audit.note(entry)
        do throws(APIFailure) {
            let answer = try await carryOut(edit)
            entry.state = .done
            // It is done, and the file says that it was asked for.
            try? await audit.note(entry)
            return answer
        } catch {
            entry.state = .refused
            entry.code = error.kind.rawValue
            try? await audit.note(entry)
            throw error
        }
    }

    private func carryOut(_ edit: ConsoleEdit) async throws(APIFailure) -> [UInt8] {
        switch edit {
        case .record(let edit): return try await write(edit)
        case .conflict(let edit): return try await settle(edit)
        case .device(let device, let identity): return try await revoke(device, of: identity)
        }
    }

    // MARK: - Records

    private func write(_ edit: ConsoleEdit.OfRecord) async throws(APIFailure) -> [UInt8] {
        try await change(edit.dataset, edit.reference) { [self] dataset, key, isLimited in
            if isLimited { try checkLimits(key, edit.value, in: dataset) }
            return try told([edit.dataset]) {
                if let value = edit.value {
                    try dataset.put(value, for: key, ifAt: edit.expected)
                } else {
                    try dataset.delete(key, ifAt: edit.expected)
                }
                return try Self.answer(key, in: dataset)
            }
        }
    }

    /// What an identity may have, an administrator may not make it exceed either: its devices could
    /// not write any more.
    private func checkLimits(_ key: [UInt8], _ value: [UInt8]?, in dataset: Dataset) throws {
        let limits = parts.settings.limits
        if let value {
            let dot = Dot(replica: dataset.store.replicaID, counter: 1)
            let record = Record(
                key: key, value: value,
                version: Version(dot: dot, vector: VersionVector(), time: .zero),
                syncCount: .zero, isDirty: false)
            do {
                try NativeLimits(limits).validate(record)
            } catch {
                throw APIFailure(.invalidParameter, "the record is refused: \(error)")
            }
        }
        var facts = try parts.books.facts(
            of: dataset.name, at: try dataset.knowledge(), in: dataset.store)
        let former = try parts.books.totals(of: dataset, &facts)
        var totals = former
        totals.replace(try dataset.recordOrTombstone(of: key), by: value, key: key)
        try totals.check(after: former, limits)
    }

    // MARK: - Conflicts

    private func settle(_ edit: ConsoleEdit.OfConflict) async throws(APIFailure) -> [UInt8] {
        try await change(edit.dataset, edit.reference) { [self] dataset, key, isLimited in
            let waiting = try dataset.pendingConflicts(of: key)
            guard let first = waiting.first?.conflict else {
                throw APIFailure(.resourceNotFound, "nothing of that key waits any more")
            }
            guard first.local.version.dot == edit.expected else { throw Self.changedMeanwhile }
            if isLimited {
                try checkLimits(key, first.value(after: edit.resolution), in: dataset)
            }
            return try told([edit.dataset]) {
                if waiting.count == 1 {
                    try dataset.settle(first, as: edit.resolution)
                } else {
                    try dataset.settle(key, with: edit.resolution)
                }
                return try Self.answer(key, in: dataset)
            }
        }
    }

    // MARK: - Devices

    private func revoke(
        _ device: DeviceID, of identity: IdentityID
    ) async throws(APIFailure) -> [UInt8] {
        let identities = parts.identities
        let isGone = try await parts.threads.write { store -> Bool in
            guard let facts = try identities.identity(identity, in: store),
                try DeviceBook.device(device, of: identity, in: store) != nil
            else { return false }
            var batch = WriteBatch()
            try DeviceBook.forget(device, of: identity, facts.pool, in: store, &batch)
            try store.write(batch)
            return true
        }
        guard isGone else {
            throw APIFailure(.resourceNotFound, "the identity has no such device")
        }
        parts.connected.close(device, of: identity)
        return Array("{}".utf8)
    }

    // MARK: - Support

    /// Runs what changes a key with the identity of its dataset held.
    ///
    /// - Parameter body: called on a writer thread with the dataset, the key, and whether the
    ///   limits of an identity are to be kept.
    private func change(
        _ name: String, _ reference: RecordReference,
        _ body: @escaping @Sendable (Dataset, [UInt8], Bool) throws -> [UInt8]
    ) async throws(APIFailure) -> [UInt8] {
        let holding = try await holdIdentity(of: name)
        defer { holding.pass.end() }
        let isLimited = holding.isIdentity
        return try await parts.threads.write { store in
            let dataset = try Self.dataset(name, in: store)
            return try body(dataset, try reference.key(in: dataset), isLimited)
        }
    }

    /// Holds the identity of a dataset, so that it is neither merged nor deleted meanwhile. A
    /// dataset of nobody's needs none.
    ///
    /// - Throws: `resourceConflict` for one that is not in use any more, `tooManyRequests`.
    private func holdIdentity(
        of name: String
    ) async throws(APIFailure) -> (pass: IdentityPass, isIdentity: Bool) {
        let identities = parts.identities
        guard let owner = StoreNames.parsed(name)?.identity else {
            return (IdentityPass(nil, identities.calls), false)
        }
        let found = try await parts.threads.read { store in
            try identities.identity(owner, in: store)
        }
        guard let facts = found else { return (IdentityPass(nil, identities.calls), false) }
        do throws(APIFailure) {
            let principal = Principal.identity(owner, pool: facts.pool, isAuthenticated: true)
            return (try await parts.gate.enter(principal), true)
        } catch {
            guard error.kind == .notAuthorized else { throw error }
            throw APIFailure(
                .resourceConflict,
                "the identity is not in use any more; nothing is written to its datasets")
        }
    }

    /// Runs what changes datasets as a push of a replica does: who follows them is told before and
    /// behind it.
    private func told<Value>(_ names: [String], _ body: () throws -> Value) throws -> Value {
        try parts.sink.willChange(names)
        defer { parts.sink.didChange(names) }
        do {
            return try body()
        } catch let error as StoreError where error.code == .versionMismatch {
            throw Self.changedMeanwhile
        } catch let error as StoreError where error.code == .invalidArgument {
            throw APIFailure(.invalidParameter, "the store refuses it: \(error.message)")
        }
    }

    private static var changedMeanwhile: APIFailure {
        APIFailure(
            .resourceConflict,
            "the record was changed since it was shown; look at it again, then decide")
    }

    /// The record as it is now.
    private static func answer(_ key: [UInt8], in dataset: Dataset) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        if let record = try dataset.recordOrTombstone(of: key) {
            answer.addMembers(of: record, valueBytesMax: ConsoleLimits.shownBytes)
        }
        answer.close("}")
        return answer.bytes
    }
}
