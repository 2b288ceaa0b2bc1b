import Foundation
import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// The operations of the API on a store of its own, without a server in front of them.
final class CognitoFixture: Sendable {
    static let pool = "us-east-1:0000-aa"
    static let identity = "us-east-1:1111-aa"

    let directory: TemporaryDirectory
    let threads: HubThreads
    let time = VirtualEnvironment()
    let books: SyncBooks
    let records: RecordOperations
    let datasets: DatasetOperations

    /// What takes part in updates.
    struct Hooks: Sendable {
        var trigger: any SyncTrigger = NoHooks()
        var resolver: any ConflictResolver = NoHooks()
        var sink: any ChangeSink = NoHooks()
    }

    /// - Parameter store: nil for a new one.
    init(
        limits: HubLimits = HubLimits(), hooks: Hooks = Hooks(),
        pools: Set<String> = [CognitoFixture.pool], store: Store? = nil,
        isInUse: @escaping @Sendable (IdentityID, Store) throws -> Bool = { _, _ in true }
    ) throws {
        let home = try TemporaryDirectory()
        directory = home
        // Each session token is another one.
        time.setRandoms(Array(1...20_000))
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        threads = HubThreads(
            stores: StoreHolder(try store ?? home.store("hub")), readers: 2, writers: 4,
            callsMax: 1_000, logger: logger)
        books = SyncBooks(isInUse: isInUse)
        let secrets = try HubSecrets(keys: [[UInt8](repeating: 7, count: 32)])
        records = RecordOperations(
            threads: threads, limits: limits, secrets: secrets, clock: time,
            trigger: hooks.trigger, resolver: hooks.resolver, sink: hooks.sink, books: books)
        datasets = DatasetOperations(
            threads: threads, limits: limits, identities: StoredIdentities(),
            pools: Set(pools.compactMap { PoolID($0) }), secrets: secrets, clock: time,
            books: books)
        threads.start()
    }

    var store: Store { threads.stores.current }

    /// The dataset in the store.
    func dataset(_ name: String = "notes", of identity: String = identity) throws -> Dataset {
        try store.dataset("\(identity):\(name)")
    }

    func answer(
        _ method: String, _ path: String, query: String = "", body: [UInt8] = [],
        as principal: Principal? = nil
    ) async throws -> [UInt8] {
        let route = try SyncRoute(method: method, path: path)
        let request = SigV4Request(method: method, path: path, query: query, headers: [])
        let call = SyncCall(
            route: route, query: try SyncQuery(request), body: body,
            principal: try principal ?? Self.principal(), clientContext: nil, requestID: "1")
        let handlers: [any SyncOperationHandler] = [records, datasets]
        let handler = try #require(handlers.first { $0.operations.contains(route.operation) })
        return try await handler.answer(call)
    }

    static func principal(_ identity: String = identity) throws -> Principal {
        .identity(
            try #require(IdentityID(identity)), pool: try #require(PoolID(pool)),
            isAuthenticated: true)
    }
}

/// Runs the body with operations on a new store.
func withCognito(
    limits: HubLimits = HubLimits(), hooks: CognitoFixture.Hooks = CognitoFixture.Hooks(),
    pools: Set<String> = [CognitoFixture.pool],
    _ body: (CognitoFixture) async throws -> Void
) async throws {
    let fixture = try CognitoFixture(limits: limits, hooks: hooks, pools: pools)
    do {
        try await body(fixture)
    } catch {
        try? await fixture.threads.shutdown()
        throw error
    }
    try await fixture.threads.shutdown()
    try fixture.store.close()
}

/// The same, for what one device does.
func withCognitoDevice(
    limits: HubLimits = HubLimits(), hooks: CognitoFixture.Hooks = CognitoFixture.Hooks(),
    _ body: (CognitoDevice, CognitoFixture) async throws -> Void
) async throws {
    try await withCognito(limits: limits, hooks: hooks) { fixture in
        try await body(CognitoDevice(fixture: fixture), fixture)
    }
}

/// Identities for which a dataset `POOL:IDENTITY` with dashes for colons stands in `test-pools`.
private struct StoredIdentities: IdentityListing {
    func identityIDs(
        of pool: PoolID, after: IdentityID?, limit: Int, in store: Store
    ) throws(StoreError) -> [IdentityID] {
        guard let home = try store.existingDataset("test-pools") else { return [] }
        let prefix = pool.text + "/"
        var ids: [IdentityID] = []
        let cursor = try home.records(in: .prefix(prefix))
        while ids.count < limit, let record = try cursor.next() {
            guard let text = record.keyText?.dropFirst(prefix.count),
                let id = IdentityID(String(text)), text > (after?.text ?? "")[...]
            else { continue }
            ids.append(id)
        }
        return ids
    }
}

// MARK: - A client

/// A device that uses one dataset through the API.
struct CognitoDevice {
    let fixture: CognitoFixture
    var identity = CognitoFixture.identity
    var dataset = "notes"
    var deviceID: String?

    var path: String {
        "/identitypools/\(CognitoFixture.pool)/identities/\(identity)/datasets/\(dataset)"
    }

    func list(
        since: UInt64? = nil, max: Int? = nil, next: String? = nil
    ) async throws -> Listing {
        var query: [String] = []
        if let since { query.append("lastSyncCount=\(since)") }
        if let max { query.append("maxResults=\(max)") }
        if let next { query.append("nextToken=\(next)") }
        let bytes = try await fixture.answer(
            "GET", path + "/records", query: query.joined(separator: "&"),
            as: try CognitoFixture.principal(identity))
        return try Wire.decoded(bytes)
    }

    /// All pages of so many records each.
    func listAll(since: UInt64? = nil, max: Int) async throws -> [Listing] {
        var pages = [try await list(since: since, max: max)]
        while let next = pages.last?.nextToken {
            pages.append(try await list(since: since, max: max, next: next))
        }
        return pages
    }

    @discardableResult
    func update(
        _ patches: [Patch], session: String?, as principal: Principal? = nil
    ) async throws -> [WireRecord] {
        let body = try Wire.body(patches, session: session, deviceID: deviceID)
        let bytes = try await fixture.answer(
            "POST", path, body: body,
            as: try principal ?? CognitoFixture.principal(identity))
        let answer: UpdateAnswer = try Wire.decoded(bytes)
        return answer.records
    }

    /// Lists and updates, as clients do.
    @discardableResult
    func sync(_ patches: [Patch]) async throws -> [WireRecord] {
        try await update(patches, session: try await list().syncSessionToken)
    }

    func describe() async throws -> WireDataset {
        let bytes = try await fixture.answer(
            "GET", path, as: try CognitoFixture.principal(identity))
        let answer: DatasetAnswer = try Wire.decoded(bytes)
        return answer.dataset
    }

    @discardableResult
    func delete() async throws -> WireDataset {
        let bytes = try await fixture.answer(
            "DELETE", path, as: try CognitoFixture.principal(identity))
        let answer: DatasetAnswer = try Wire.decoded(bytes)
        return answer.dataset
    }
}

struct Patch: Sendable {
    let key: String
    /// nil removes.
    let value: String?
    let count: UInt64
    var date: Double?

    static func put(_ value: String, _ key: String, _ count: UInt64 = 0) -> Patch {
        Patch(key: key, value: value, count: count)
    }

    static func remove(_ key: String, _ count: UInt64) -> Patch {
        Patch(key: key, value: nil, count: count)
    }
}

struct WireRecord: Decodable, Equatable, Sendable {
    let key: String
    let value: String?
    let syncCount: UInt64
    let lastModifiedDate: Double
    let lastModifiedBy: String
    let deviceLastModifiedDate: Double
}

struct Listing: Decodable, Sendable {
    let records: [WireRecord]
    let count: Int
    let nextToken: String?
    let datasetSyncCount: UInt64
    let lastModifiedBy: String?
    let mergedDatasetNames: [String]
    let datasetExists: Bool
    let datasetDeletedAfterRequestedSyncCount: Bool
    let syncSessionToken: String

    /// By their keys: the value, or "-" for a removed one, and the count.
    var contents: [String: String] {
        Dictionary(
            uniqueKeysWithValues: records.map { ($0.key, "\($0.value ?? "-")@\($0.syncCount)") })
    }
}

struct UpdateAnswer: Decodable, Sendable {
    let records: [WireRecord]
}

struct WireDataset: Decodable, Equatable, Sendable {
    let identityId: String
    let datasetName: String
    let creationDate: Double
    let lastModifiedDate: Double
    let lastModifiedBy: String?
    let dataStorage: Int
    let numRecords: Int
}

struct DatasetAnswer: Decodable, Sendable {
    let dataset: WireDataset
}

/// JSON as others read and write it.
enum Wire {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { return nil }
    }

    static func decoded<Value: Decodable>(_ bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        // The API's names begin with a capital.
        decoder.keyDecodingStrategy = .custom { path in
            let name = path.last?.stringValue ?? ""
            return Key(stringValue: name.prefix(1).lowercased() + String(name.dropFirst()))
        }
        return try decoder.decode(Value.self, from: Data(bytes))
    }

    static func body(
        _ patches: [Patch], session: String?, deviceID: String? = nil
    ) throws -> [UInt8] {
        var members: [String: Any] = [
            "RecordPatches": patches.map { patch -> [String: Any] in
                var members: [String: Any] = [
                    "Op": patch.value == nil ? "remove" : "replace", "Key": patch.key,
                    "SyncCount": patch.count,
                ]
                if let value = patch.value { members["Value"] = value }
                if let date = patch.date { members["DeviceLastModifiedDate"] = date }
                return members
            }
        ]
        if let session { members["SyncSessionToken"] = session }
        if let deviceID { members["DeviceId"] = deviceID }
        return Array(try JSONSerialization.data(withJSONObject: members))
    }
}

/// What a call is refused with; nil if it is not.
func refusal(_ body: () async throws -> Void) async throws -> APIFailure? {
    do {
        try await body()
        return nil
    } catch let failure as APIFailure {
        return failure
    }
}
