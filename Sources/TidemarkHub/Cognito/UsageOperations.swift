import Tidemark
import TidemarkSync

// How much identities and pools hold. Nothing of it is kept up to date: it is added up when it is
// asked for, piece by piece so that other calls come in between, and kept for a minute for pools.

extension DatasetOperations {
    func describeUsage(of call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let (pool, identity) = (try call.pool(), try call.identity())
        return try await threads.read { store in
            let usage = try books.usage(of: identity, in: store)
            var answer = JSONAnswer()
            answer.open("{")
            usage.write(to: &answer, of: identity, in: pool)
            answer.close("}")
            return answer.bytes
        }
    }

    func describePoolUsage(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let pool = try call.pool()
        guard pools.contains(pool) else {
            throw APIFailure(.resourceNotFound, "the hub has no identity pool \(pool)")
        }
        var answer = JSONAnswer()
        answer.open("{")
        try await tellUsage(of: pool, as: "IdentityPoolUsage", to: &answer)
        answer.close("}")
        return answer.bytes
    }

    func listPoolUsages(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        var last = ""
        if let token = call.query.nextToken {
            last = try NamePageToken(token, .pools, of: "", secrets).last
        }
        let limit = min(call.query.maxResults ?? .max, max(1, limits.pageDatasetsMax))
        let rest = pools.filter { $0.text > last }.sorted { $0.text < $1.text }
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "IdentityPoolUsages")
        for pool in rest.prefix(limit) {
            try await tellUsage(of: pool, as: nil, to: &answer)
        }
        answer.close("]")
        answer.add("MaxResults", limit)
        answer.add("Count", min(limit, rest.count))
        if rest.count > limit {
            let token = NamePageToken(last: rest[limit - 1].text)
            answer.add("NextToken", text: token.sealed(.pools, of: "", secrets))
        }
        answer.close("}")
        return answer.bytes
    }

    private func tellUsage(
        of pool: PoolID, as name: String?, to answer: inout JSONAnswer
    ) async throws(APIFailure) {
        let usage = try await usages.usage(of: pool) {
            () async throws(APIFailure) -> StorageUsage in
            try await addedUp(pool)
        }
        let sessions = books.sessions
        let count = try await threads.read { store in try sessions.count(of: pool, in: store) }
        usage.write(to: &answer, as: name, of: pool, sessionCount: count)
    }

    private func addedUp(_ pool: PoolID) async throws(APIFailure) -> StorageUsage {
        var usage = StorageUsage()
        var last: IdentityID?
        while true {
            let after = last
            let part = try await threads.read { store in
                try partOfUsage(of: pool, after: after, in: store)
            }
            usage.add(part.usage)
            guard let next = part.last else { return usage }
            last = next
        }
    }

    /// What some identities hold, and the last of them; nil if there are no more.
    private func partOfUsage(
        of pool: PoolID, after: IdentityID?, in store: Store
    ) throws -> (usage: StorageUsage, last: IdentityID?) {
        let ids = try identities.identityIDs(
            of: pool, after: after, limit: Self.identitiesAtOnce, in: store)
        var usage = StorageUsage()
        for id in ids { usage.add(try books.usage(of: id, in: store)) }
        return (usage, ids.count < Self.identitiesAtOnce ? nil : ids.last)
    }

    /// So few that no other call waits for long.
    private static let identitiesAtOnce = 64
}

extension SyncBooks {
    /// What the datasets of an identity hold. O(datasets), and O(records) in those that nobody
    /// asked about lately. Keeps nothing, since there may be very many.
    func usage(of identity: IdentityID, in store: Store) throws -> StorageUsage {
        let prefix = StoreNames.prefix(of: identity)
        var usage = StorageUsage()
        var last: String?
        while true {
            let names = try store.datasetNames(prefix: prefix, after: last, limit: 256)
            for name in names {
                let body = try descriptionIfThere(
                    of: name, called: name, identity, in: store, isKept: false)
                if let body { usage.add(body) }
            }
            guard names.count == 256 else { return usage }
            last = names.last
        }
    }
}

/// What pools hold, as it was added up at most a minute ago.
///
/// Whoever asks while it is added up waits for that, so that no number of callers makes it be done
/// twice at once.
actor PoolUsageBook {
    private typealias Outcome = Result<StorageUsage, APIFailure>

    private let clock: any SyncEnvironment
    private var known: [PoolID: (usage: StorageUsage, milliseconds: UInt64)] = [:]
    private var underWay: [PoolID: Task<Outcome, Never>] = [:]

    static let lifetimeMilliseconds: UInt64 = 60_000

    init(clock: any SyncEnvironment) {
        self.clock = clock
    }

    /// - Parameter addUp: what finds it out if it is not known, or was found out too long ago.
    func usage(
        of pool: PoolID, _ addUp: @escaping @Sendable () async throws(APIFailure) -> StorageUsage
    ) async throws(APIFailure) -> StorageUsage {
        let now = clock.now()
        if let known = known[pool], now >= known.milliseconds,
            now - known.milliseconds < Self.lifetimeMilliseconds
        {
            return known.usage
        }
        if let task = underWay[pool] { return try await task.value.get() }
        let task = Task { await Self.outcome(of: addUp) }
        underWay[pool] = task
        let outcome = await task.value
        underWay[pool] = nil
        // As of its beginning.
        if case .success(let usage) = outcome { known[pool] = (usage, now) }
        return try outcome.get()
    }

    private static func outcome(
        of addUp: @Sendable () async throws(APIFailure) -> StorageUsage
    ) async -> Outcome {
        do throws(APIFailure) {
            return .success(try await addUp())
        } catch {
            return .failure(error)
        }
    }
}
