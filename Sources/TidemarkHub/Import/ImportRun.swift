import Tidemark

/// One import under way: identity by identity, a few at once.
struct ImportRun: Sendable {
    let service: CognitoSource
    let store: Store
    let facts: IdentityImport
    let logins: [String: [VerifiedLogin]]
    let developerProvider: String?
    let identitiesAtOnce: Int

    typealias Report = HubImport.Report
    typealias Problem = HubImport.Problem

    /// - Parameter only: ids of identities of the only pool; nil for all that are listed.
    func all(
        _ pools: [PoolID], only ids: [IdentityID]?, _ progress: (@Sendable (Report) -> Void)?
    ) async throws -> Report {
        var report = Report()
        for pool in pools {
            if let ids {
                for part in stride(from: 0, to: ids.count, by: identitiesAtOnce) {
                    let some = ids[part..<min(part + identitiesAtOnce, ids.count)]
                    var listed: [ListedIdentity] = []
                    for id in some { listed.append(try await service.identity(id)) }
                    try await bring(listed, of: pool, &report, progress)
                }
                continue
            }
            var token: String?
            repeat {
                let page = try await service.identities(of: pool, after: token)
                try await bring(page.identities ?? [], of: pool, &report, progress)
                token = try CognitoSource.next(page.nextToken, after: token)
            } while token != nil
        }
        return report
    }

    private func bring(
        _ listed: [ListedIdentity], of pool: PoolID, _ report: inout Report,
        _ progress: (@Sendable (Report) -> Void)?
    ) async throws {
        let atOnce = identitiesAtOnce
        try await withThrowingTaskGroup(of: Report.self) { group in
            var running = 0
            for identity in listed {
                if running == atOnce, let part = try await group.next() {
                    report.add(part)
                    progress?(report)
                    running -= 1
                }
                group.addTask { try await self.bring(identity, of: pool) }
                running += 1
            }
            while let part = try await group.next() {
                report.add(part)
                progress?(report)
            }
        }
    }

    private func bring(_ listed: ListedIdentity, of pool: PoolID) async throws -> Report {
        var report = Report()
        guard let id = IdentityID(listed.id) else {
            report.add(Problem(place: listed.id, reason: "its id is out of shape"))
            return report
        }
        guard try facts.takes(id, of: pool) else {
            report.add(Problem(place: id.text, reason: IdentityImport.refusal))
            return report
        }
        let names = try await service.datasets(of: id, in: pool)
        var merged: [(into: APIDatasetName, names: [APIDatasetName])] = []
        for text in names {
            guard let name = APIDatasetName(text) else {
                report.add(Problem(place: "\(id)/\(text)", reason: "its name is out of shape"))
                continue
            }
            let found = try await bring(name, of: id, in: pool, &report)
            if !found.isEmpty { merged.append((into: name, names: found)) }
        }
        // Once all of them are there.
        for one in merged {
            try DatasetImport(store: store, name: one.into, identity: id).noteMerged(one.names)
        }
        // Last: who is found here has all that is theirs.
        try await bringFacts(listed, id, of: pool, &report)
        report.identities += 1
        return report
    }

    /// - Returns: the datasets that are to go into it.
    private func bring(
        _ name: APIDatasetName, of id: IdentityID, in pool: PoolID, _ report: inout Report
    ) async throws -> [APIDatasetName] {
        report.datasets += 1
        let target = DatasetImport(store: store, name: name, identity: id)
        let place = "\(id)/\(name)"
        var since: UInt64?
        switch try target.start() {
        case .nothing:
            report.add(Problem(place: place, reason: "somebody has written to it here; it stays"))
            return []
        case .all: since = nil
        case .after(let count): since = count
        }
        var listing = try await service.records(of: name.text, id, in: pool, since: since)
        if since != nil, listing.facts.wasDeleted == true {
            try target.delete()
            listing = try await service.records(of: name.text, id, in: pool, since: nil)
        }
        guard listing.facts.exists != false else { return [] }
        switch try target.write(listing.records, through: listing.facts.datasetSyncCount) {
        case .written(let records, let removals):
            report.records += records
            report.removals += removals
        case .tooHighCount(let count):
            report.add(
                Problem(
                    place: place,
                    reason: "its sync count of \(count) is more than "
                        + "\(ImportPlan.fillersMax) ahead of what is here"))
        }
        return (listing.facts.mergedDatasetNames ?? []).compactMap { APIDatasetName($0) }
    }

    private func bringFacts(
        _ listed: ListedIdentity, _ id: IdentityID, of pool: PoolID, _ report: inout Report
    ) async throws {
        let providers = listed.providers ?? []
        var known = logins[id.text] ?? []
        if let developerProvider, providers.contains(developerProvider) {
            for user in try await service.developerUsers(of: id, in: pool) {
                known.append(VerifiedLogin(provider: developerProvider, subject: user))
            }
        }
        let seconds = listed.creationDate ?? 0
        let created = seconds > 0 && seconds < 1e12 ? UInt64(seconds * 1_000) : 0
        let outcome = try facts.write(
            id, in: pool, created: created, hasLogins: !providers.isEmpty, logins: known)
        switch outcome {
        case .open: break
        case .closed: report.closedIdentities += 1
        case .refused(let reason): report.add(Problem(place: id.text, reason: reason))
        }
    }
}
