import TestSupport
import Testing

@testable import TidemarkHub

/// Nobody reaches what is another's, whatever the operation.
struct AuthorizerTests {
    static let pool = "us-east-1:0000-1"
    static let identity = "us-east-1:0000-2"

    private static func failure(_ route: SyncRoute, _ principal: Principal) -> APIFailure.Kind? {
        do throws(APIFailure) {
            try Authorizer.check(route, principal)
            return nil
        } catch {
            return error.kind
        }
    }

    /// A request for an operation about what is named.
    private static func route(
        _ operation: SyncOperation, pool: String = Self.pool, identity: String = Self.identity
    ) throws -> SyncRoute {
        let path = operation.pattern.map { segment in
            switch segment {
            case .fixed(let text): text
            case .pool: pool
            case .identity: identity
            case .dataset: "notes"
            case .device: "d"
            }
        }
        return try SyncRoute(
            method: operation.method, path: "/" + path.joined(separator: "/"))
    }

    @Test("each operation takes the credentials that it is for", arguments: SyncOperation.allCases)
    func audiences(_ operation: SyncOperation) throws {
        let route = try Self.route(operation)
        let pool = try #require(PoolID(Self.pool))
        let identity = try #require(IdentityID(Self.identity))
        let audience = operation.audience
        let own = Principal.identity(identity, pool: pool, isAuthenticated: true)
        let ofIdentity = Self.failure(route, own)
        #expect(ofIdentity == (audience == .developer ? .notAuthorized : nil))
        let ofDeveloper = Self.failure(route, .developer(keyID: "k", pools: nil))
        #expect(ofDeveloper == (audience == .identity ? .notAuthorized : nil))
        #expect(Self.failure(route, .anonymous) == .missingAuthenticationToken)
        let usage: [SyncOperation] = [
            .describeIdentityPoolUsage, .describeIdentityUsage, .listIdentityPoolUsage,
        ]
        #expect(
            Self.failure(route, .admin) == (usage.contains(operation) ? nil : .notAuthorized))
        #expect(Self.failure(route, .replica(space: "team")) == .notAuthorized)
    }

    @Test("other identities and pools are out of reach", arguments: SyncOperation.allCases)
    func strangers(_ operation: SyncOperation) throws {
        let pool = try #require(PoolID(Self.pool))
        let identity = try #require(IdentityID(Self.identity))
        let own = Principal.identity(identity, pool: pool, isAuthenticated: false)
        let otherPool = try Self.route(operation, pool: "us-east-1:0000-3")
        let otherIdentity = try Self.route(operation, identity: "us-east-1:0000-4")
        #expect(Self.failure(otherPool, own) == .notAuthorized)
        if operation.audience != .developer {
            #expect(Self.failure(otherIdentity, own) == .notAuthorized)
        }
        let keyOfPool = Principal.developer(keyID: "k", pools: [pool])
        #expect(Self.failure(otherPool, keyOfPool) == .notAuthorized)
    }

    @Test("no name of a dataset leads out of an identity")
    func names() throws {
        var generator = SeededGenerator(Seed.drawn())
        let pieces = [
            "hub", "space", ":", "a", "0", "-", "_", ".", "us-east-1", "us-east-1:0000-2",
        ]
        var owners: [String: IdentityID] = [:]
        func text() -> String {
            var text = ""
            for _ in 0..<(1 + generator.below(5)) { text += generator.element(of: pieces) }
            return text
        }
        for _ in 0..<20_000 {
            guard let identity = IdentityID(text()), let name = APIDatasetName(text()) else {
                continue
            }
            let stored = StoreNames.dataset(name, of: identity)
            #expect(owners[stored, default: identity] == identity)
            owners[stored] = identity
            #expect(StoreNames.apiName(of: stored, identity) == name)
            #expect(!stored.hasPrefix(StoreNames.ownPrefix))
            #expect(!stored.hasPrefix(StoreNames.prefix(ofSpace: "a")))
            #expect(stored.utf8.count <= 184)
        }
        #expect(owners.count > 100)
        #expect(IdentityID("hub:0") == nil)
        #expect(IdentityID("hubs:0") != nil)
    }
}
