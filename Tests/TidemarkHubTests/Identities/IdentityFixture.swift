import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Identities in a store of their own.
final class IdentityFixture: Sendable {
    let directory: TemporaryDirectory
    let store: Store
    let time = VirtualEnvironment()
    let identities: IdentityDirectory
    let pool: PoolID
    let otherPool: PoolID
    let secrets: HubSecrets
    let threads: HubThreads

    static let poolText = "us-east-1:0000-1"

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
        identities = IdentityDirectory(clock: time)
        pool = try #require(PoolID(Self.poolText))
        otherPool = try #require(PoolID("us-east-1:0000-2"))
        secrets = try HubSecrets(keys: [HubSecretsTests.one])
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        threads = HubThreads(
            stores: StoreHolder(store), readers: 2, writers: 2, callsMax: 100, logger: logger)
        threads.start()
    }

    deinit {
        // They must be stopped before they go, and stopping takes a while.
        let threads = threads
        Task { try? await threads.shutdown() }
    }

    /// A new identity that has signed in so, made one second after the last one.
    func identity(_ subjects: String..., in pool: PoolID? = nil) throws -> IdentityFacts {
        time.advance(by: .seconds(1))
        let logins = subjects.map { Self.login($0) }
        return try identities.identity(for: logins, in: pool ?? self.pool, store).facts
    }

    static func login(_ subject: String, _ provider: String = "login.example.com")
        -> VerifiedLogin
    {
        VerifiedLogin(provider: provider, subject: subject)
    }

    func facts(_ facts: IdentityFacts) throws -> IdentityFacts? {
        try identities.identity(facts.id, in: store)
    }

    /// A dataset of an identity, with these records.
    @discardableResult
    func dataset(
        _ name: String, of facts: IdentityFacts, _ records: [String: String] = [:]
    ) throws -> Dataset {
        let dataset = try store.dataset("\(facts.id):\(name)")
        for (key, value) in records { try dataset.put(value, for: key) }
        return dataset
    }

    func records(_ storeName: String) throws -> [String: String]? {
        try Self.records(storeName, in: store)
    }

    /// All live records of a dataset; nil if there is none.
    static func records(_ storeName: String, in store: Store) throws -> [String: String]? {
        guard let dataset = try store.existingDataset(storeName) else { return nil }
        var records: [String: String] = [:]
        for record in try dataset.records().collect() {
            let text: String = try #require(record.valueText)
            records[try #require(record.keyText)] = text
        }
        return records
    }

    /// What a body fails with; nil if it does not.
    static func failure(_ body: () throws -> Void) throws -> APIFailure.Kind? {
        do {
            try body()
            return nil
        } catch let failure as APIFailure {
            return failure.kind
        }
    }
}
