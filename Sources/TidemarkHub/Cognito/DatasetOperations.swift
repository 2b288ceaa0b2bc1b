import Tidemark
import TidemarkSync

/// The identities of pools, for whoever adds up what they hold: see `IdentityDirectory`.
protocol IdentityListing: Sendable {
    /// Ids of a pool behind one, in an order that does not change, at most so many. O(answer).
    func identityIDs(
        of pool: PoolID, after: IdentityID?, limit: Int, in store: Store
    ) throws(StoreError) -> [IdentityID]
}

/// The operations about whole datasets, and about how much identities and pools hold.
struct DatasetOperations: SyncOperationHandler {
    let threads: HubThreads
    let limits: HubLimits
    let identities: any IdentityListing
    /// Those that the hub has.
    let pools: Set<PoolID>
    let secrets: HubSecrets
    let clock: any SyncEnvironment
    /// Those of the hub, which `RecordOperations` has, too.
    let books: SyncBooks
    let usages: PoolUsageBook

    let operations: Set<SyncOperation> = [
        .deleteDataset, .describeDataset, .listDatasets, .describeIdentityUsage,
        .describeIdentityPoolUsage, .listIdentityPoolUsage,
    ]

    init(
        threads: HubThreads, limits: HubLimits, identities: any IdentityListing,
        pools: Set<PoolID>, secrets: HubSecrets, clock: any SyncEnvironment, books: SyncBooks
    ) {
        self.threads = threads
        self.limits = limits
        self.identities = identities
        self.pools = pools
        self.secrets = secrets
        self.clock = clock
        self.books = books
        usages = PoolUsageBook(clock: clock)
    }

    func answer(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        switch call.route.operation {
        case .deleteDataset: return try await delete(call)
        case .describeDataset: return try await describe(call)
        case .listDatasets: return try await list(call)
        case .describeIdentityUsage: return try await describeUsage(of: call)
        case .describeIdentityPoolUsage: return try await describePoolUsage(call)
        case .listIdentityPoolUsage: return try await listPoolUsages(call)
        default: throw APIFailure(.unknownOperation, "no operation has this path")
        }
    }

    // MARK: - One dataset

    private func describe(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let (identity, name) = (try call.identity(), try call.datasetName())
        return try await threads.read { store in
            let storeName = StoreNames.dataset(name, of: identity)
            guard let dataset = try store.existingDataset(storeName) else {
                throw Self.missing(name)
            }
            return Self.answer(
                try books.description(of: dataset, called: name.text, identity))
        }
    }

    /// What it was is told once more, as it was at the end.
    private func delete(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let (identity, name) = (try call.identity(), try call.datasetName())
        return try await threads.write { store in
            let storeName = StoreNames.dataset(name, of: identity)
            guard let dataset = try store.existingDataset(storeName) else {
                throw Self.missing(name)
            }
            let body = try books.description(of: dataset, called: name.text, identity)
            // Read before: behind the deletion somebody may have made the dataset anew.
            let last = try dataset.knowledge().syncCount.rawValue
            guard try store.deleteDataset(storeName) else { throw Self.missing(name) }
            books.cache.forget(storeName)
            // The deletion is durable. A crash before the end leaves entries of no record, and so
            // does a write that came in before it.
            if let sheet = try Sheet(of: storeName, in: store) {
                try sheet.removeEntries(through: last)
            }
            return Self.answer(body)
        }
    }

    private static func answer(_ body: DatasetBody) -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        body.write(to: &answer, as: "Dataset")
        answer.close("}")
        return answer.bytes
    }

    private static func missing(_ name: APIDatasetName) -> APIFailure {
        APIFailure(.resourceNotFound, "the identity has no dataset \(name)")
    }

    // MARK: - All of an identity

    private func list(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let identity = try call.identity()
        var last: String?
        if let token = call.query.nextToken {
            last = try NamePageToken(token, .datasets, of: identity.text, secrets).last
        }
        let after = last
        let limit = min(call.query.maxResults ?? .max, max(1, limits.pageDatasetsMax))
        return try await threads.read { store in
            try listed(identity, after: after, limit: limit, in: store)
        }
    }

    private func listed(
        _ identity: IdentityID, after: String?, limit: Int, in store: Store
    ) throws -> [UInt8] {
        let prefix = StoreNames.prefix(of: identity)
        let names = try store.datasetNames(
            prefix: prefix, after: after.map { prefix + $0 }, limit: limit + 1)
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "Datasets")
        var count = 0
        for name in names.prefix(limit) {
            // Replicas may call datasets what no path of the API can name: those are theirs alone.
            guard let apiName = StoreNames.apiName(of: name, identity),
                let body = try books.descriptionIfThere(
                    of: name, called: apiName.text, identity, in: store)
            else { continue }
            body.write(to: &answer)
            count += 1
        }
        answer.close("]")
        answer.add("Count", count)
        if names.count > limit {
            let token = NamePageToken(last: String(names[limit - 1].dropFirst(prefix.count)))
            answer.add("NextToken", text: token.sealed(.datasets, of: identity.text, secrets))
        }
        answer.close("}")
        return answer.bytes
    }
}

extension SyncBooks {
    /// What the API tells of a dataset; nil if there is none of that name in the store, or it is
    /// deleted meanwhile. Otherwise as ``description(of:called:_:isKept:)``.
    func descriptionIfThere(
        of storeName: String, called name: String, _ identity: IdentityID, in store: Store,
        isKept: Bool = true
    ) throws -> DatasetBody? {
        do {
            guard let dataset = try store.existingDataset(storeName) else { return nil }
            return try description(of: dataset, called: name, identity, isKept: isKept)
        } catch let error as StoreError where error.code == .datasetNotFound {
            return nil
        }
    }

    /// What the API tells of a dataset.
    ///
    /// - Parameters:
    ///   - name: by which the API calls it.
    ///   - isKept: whether what was found out is kept for the next call.
    /// - Throws: what the store throws; `datasetNotFound` if it was deleted meanwhile.
    func description(
        of dataset: Dataset, called name: String, _ identity: IdentityID, isKept: Bool = true
    ) throws -> DatasetBody {
        var facts = try facts(
            of: dataset.name, at: try dataset.knowledge(), in: dataset.store, isKept: isKept)
        let created = APIDate(clampingMilliseconds: try dataset.creationTime.milliseconds)
        let totals = try totals(of: dataset, &facts, isKept: isKept)
        let last = try lastChange(of: dataset, &facts, identity, isKept: isKept)
        return DatasetBody(
            identity: identity, name: name, created: created,
            lastModified: last.map { APIDate(clampingMilliseconds: $0.milliseconds) } ?? created,
            lastModifiedBy: last?.author, storageBytes: totals.bytes,
            recordCount: totals.records)
    }
}
