import Foundation
import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// The Cognito Identity API, as clients and services call it.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct IdentityAPITests {
    let fixture: IdentityFixture
    let api: IdentityAPI
    let issuer: CredentialIssuer
    let tokens: IdentityTokens
    private let developer = Principal.developer(keyID: "k", pools: nil)

    static let provider = "login.example.com"
    static let app = "login.app"
    static let own = IdentityTokens.provider

    init() throws {
        fixture = try IdentityFixture()
        var pool = PoolSettings(id: IdentityFixture.poolText, name: "one")
        pool.allowsGuests = true
        pool.providers = [Self.provider]
        pool.developerProvider = Self.app
        let closed = PoolSettings(id: fixture.otherPool.text, name: "two")
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let settings = IssuerSettings(
            provider: Self.provider, issuer: "https://login.example.com", audiences: ["app"],
            algorithms: [.hs256], keys: .shared(HubSecret(TestKeys.shared)))
        issuer = CredentialIssuer(
            secrets: fixture.secrets, clock: fixture.time, lifetimeSeconds: 3_600)
        tokens = IdentityTokens(secrets: fixture.secrets, clock: fixture.time)
        api = IdentityAPI(
            threads: fixture.threads, identities: fixture.identities, pools: [pool, closed],
            tokens: TokenVerifier(
                issuers: [settings], source: TestKeySource(nil), clock: fixture.time,
                logger: logger),
            identityTokens: tokens, issuer: issuer, secrets: fixture.secrets)
    }

    /// A token of somebody who has signed in.
    private static func token(_ subject: String) -> String {
        var token = TestToken()
        token.sub = subject
        token.exp = 1_800_000_000
        return token.shared()
    }

    private func call(
        _ operation: IdentityOperation, _ body: [String: Any], as principal: Principal? = nil
    ) async throws -> [String: Any] {
        let bytes = Array(try JSONSerialization.data(withJSONObject: body))
        let answer = try await api.answer(
            operation, body: bytes, principal: principal ?? developer)
        let object = try JSONSerialization.jsonObject(with: Data(answer))
        return try #require(object as? [String: Any])
    }

    private func failure(
        _ operation: IdentityOperation, _ body: [String: Any], as principal: Principal? = nil
    ) async throws -> APIFailure.Kind? {
        do {
            _ = try await call(operation, body, as: principal)
            return nil
        } catch let failure as APIFailure {
            return failure.kind
        }
    }

    private func id(_ logins: [String: String] = [:]) async throws -> String {
        let answer = try await call(
            .getID, ["IdentityPoolId": IdentityFixture.poolText, "Logins": logins])
        return try #require(answer["IdentityId"] as? String)
    }

    @Test("a target names an operation, and only those of services are signed")
    func operations() throws {
        for operation in IdentityOperation.allCases {
            let target = "AWSCognitoIdentityService.\(operation.rawValue)"
            #expect(try IdentityOperation(target: target) == operation)
        }
        for target in [nil, "", "GetId", "AWSCognitoIdentityService.", "Other.GetId"] {
            #expect(throws: APIFailure.self) { try IdentityOperation(target: target) }
        }
        let open = IdentityOperation.allCases.filter { !$0.isSigned }
        #expect(open == [.getID, .getCredentials, .getOpenIDToken, .unlinkIdentity])
    }

    @Test("a guest gets an id and credentials that say whose they are")
    func guests() async throws {
        let id = try await id()
        #expect(try await self.id() != id)
        let answer = try await call(.getCredentials, ["IdentityId": id])
        #expect(answer["IdentityId"] as? String == id)
        let credentials = try #require(answer["Credentials"] as? [String: Any])
        let accessKey = try #require(credentials["AccessKeyId"] as? String)
        let session = try #require(credentials["SessionToken"] as? String)
        let payload = try #require(
            SealedToken.open(session, .sessionToken, fixture.secrets))
        let claim = try #require(SessionClaim(payload))
        #expect(claim.identity.text == id)
        #expect(claim.pool == fixture.pool)
        #expect(claim.accessKeyID == accessKey)
        #expect(!claim.isAuthenticated)
        #expect((credentials["SecretKey"] as? String)?.utf8.count == 40)
        let expiration = try #require(credentials["Expiration"] as? Double)
        #expect(expiration == Double(claim.expiresSeconds))
        let closed = ["IdentityPoolId": fixture.otherPool.text]
        #expect(try await failure(.getID, closed) == .notAuthorized)
        let unknown = ["IdentityPoolId": "us-east-1:dead"]
        #expect(try await failure(.getID, unknown) == .resourceNotFound)
        #expect(try await failure(.getID, ["IdentityPoolId": "x"]) == .invalidParameter)
        #expect(try await failure(.getID, [:]) == .invalidParameter)
        #expect(try await failure(.getID, ["IdentityPoolId": 5]) == .serialization)
    }

    @Test("who has signed in has one id, and none gets credentials of it without the login")
    func logins() async throws {
        let alice = [Self.provider: Self.token("alice")]
        let mallory = [Self.provider: Self.token("mallory")]
        let id = try await id(alice)
        #expect(try await self.id(alice) == id)
        let answer = try await call(.getCredentials, ["IdentityId": id, "Logins": alice])
        #expect(answer["IdentityId"] as? String == id)
        #expect(try await failure(.getCredentials, ["IdentityId": id]) == .notAuthorized)
        for logins in [mallory, [Self.provider: "x"], ["b.example.com": Self.token("alice")]] {
            let body: [String: Any] = ["IdentityId": id, "Logins": logins]
            #expect(try await failure(.getCredentials, body) == .notAuthorized)
            #expect(try await failure(.getOpenIDToken, body) == .notAuthorized)
        }
        // Known now, mallory is still not alice.
        _ = try await self.id(mallory)
        let body: [String: Any] = ["IdentityId": id, "Logins": mallory]
        #expect(try await failure(.getCredentials, body) == .notAuthorized)
        let closed: [String: Any] = ["IdentityPoolId": fixture.otherPool.text, "Logins": alice]
        #expect(try await failure(.getID, closed) == .notAuthorized)
        let many = Dictionary(uniqueKeysWithValues: (0..<11).map { ("p\($0)", "t") })
        let tooMany: [String: Any] = ["IdentityPoolId": fixture.pool.text, "Logins": many]
        #expect(try await failure(.getID, tooMany) == .invalidParameter)
    }

    @Test("a guest that signs in as somebody known becomes that one, with what it had")
    func linking() async throws {
        let alice = [Self.provider: Self.token("alice")]
        let known = try await id(alice)
        let guest = try await id()
        let notes = try fixture.store.dataset("\(guest):notes")
        try notes.put("v", for: "k")
        let answer = try await call(.getCredentials, ["IdentityId": guest, "Logins": alice])
        #expect(answer["IdentityId"] as? String == known)
        #expect(try fixture.records("\(known):notes") == ["k": "v"])
        #expect(try await failure(.getCredentials, ["IdentityId": guest]) == .notAuthorized)
    }

    @Test("a guest's token gets nothing any more once somebody has signed in as that guest")
    func guestTokens() async throws {
        let guest = try await id()
        let given = try await call(.getOpenIDToken, ["IdentityId": guest])
        let token = try #require(given["Token"] as? String)
        let own: [String: Any] = ["IdentityId": guest, "Logins": [Self.own: token]]
        #expect(try await failure(.getCredentials, own) == nil)
        #expect(try await self.id([Self.own: token]) == guest)
        let alice = [Self.provider: Self.token("alice")]
        let signedIn: [String: Any] = ["IdentityId": guest, "Logins": alice]
        #expect(try await failure(.getCredentials, signedIn) == nil)
        #expect(try await failure(.getCredentials, own) == .notAuthorized)
        // Nor is it a way to make one's own login one of that identity.
        let mallory = [Self.provider: Self.token("mallory"), Self.own: token]
        let pool = fixture.pool.text
        for body in [
            ["IdentityPoolId": pool, "Logins": [Self.own: token]],
            ["IdentityPoolId": pool, "Logins": mallory],
        ] as [[String: Any]] {
            #expect(try await failure(.getID, body) == .notAuthorized)
        }
        let taken: [String: Any] = ["IdentityId": guest, "Logins": mallory]
        #expect(try await failure(.getCredentials, taken) == .notAuthorized)
        let identity = try #require(IdentityID(guest))
        let facts = try fixture.identities.identity(identity, in: fixture.store)
        #expect(facts?.logins.map(\.subject) == ["alice"])
    }

    @Test("no token of the hub's own gets another one, so that each ends in its time")
    func noRenewal() async throws {
        let user: [String: Any] = [
            "IdentityPoolId": fixture.pool.text, "Logins": [Self.app: "user 1"],
        ]
        let given = try await call(.getDeveloperToken, user)
        let id = try #require(given["IdentityId"] as? String)
        let token = try #require(given["Token"] as? String)
        let own: [String: Any] = ["IdentityId": id, "Logins": [Self.own: token]]
        #expect(try await failure(.getOpenIDToken, own) == .notAuthorized)
        #expect(try await failure(.getCredentials, own) == nil)
    }

    @Test("a service signs in its own users, whose devices get credentials by the token")
    func developerTokens() async throws {
        let user: [String: Any] = [
            "IdentityPoolId": fixture.pool.text, "Logins": [Self.app: "user 1"],
        ]
        let first = try await call(.getDeveloperToken, user)
        let id = try #require(first["IdentityId"] as? String)
        let token = try #require(first["Token"] as? String)
        let second = try await call(.getDeveloperToken, user)
        #expect(second["IdentityId"] as? String == id)
        let own: [String: Any] = ["IdentityId": id, "Logins": [Self.own: token]]
        let answer = try await call(.getCredentials, own)
        #expect(answer["IdentityId"] as? String == id)
        #expect(answer["Credentials"] != nil)
        #expect(try await self.id([Self.own: token]) == id)
        // Of another identity it is no proof, and by its name alone nobody is that user.
        let guest = try await self.id()
        let other: [String: Any] = ["IdentityId": guest, "Logins": [Self.own: token]]
        #expect(try await failure(.getCredentials, other) == .notAuthorized)
        let named: [String: Any] = [
            "IdentityPoolId": fixture.pool.text, "Logins": [Self.app: "user 1"],
        ]
        #expect(try await failure(.getID, named) == .notAuthorized)
        fixture.time.advance(by: .seconds(900))
        #expect(try await failure(.getCredentials, own) == .notAuthorized)
        let wrongs: [[String: Any]] = [
            ["Logins": ["x": "user"]], ["Logins": [Self.app: ""]], ["TokenDuration": 0],
            ["TokenDuration": 86_401], ["IdentityPoolId": fixture.otherPool.text],
        ]
        for wrong in wrongs {
            let body = user.merging(wrong) { $1 }
            #expect(try await failure(.getDeveloperToken, body) == .invalidParameter)
        }
    }

    @Test("users of a service are looked up, merged and unlinked")
    func developerUsers() async throws {
        var ids: [String] = []
        for user in ["one", "two"] {
            let answer = try await call(
                .getDeveloperToken,
                ["IdentityPoolId": fixture.pool.text, "Logins": [Self.app: user]])
            ids.append(try #require(answer["IdentityId"] as? String))
        }
        let pool: [String: Any] = ["IdentityPoolId": fixture.pool.text]
        let found = try await call(
            .lookupDeveloper, pool.merging(["DeveloperUserIdentifier": "one"]) { $1 })
        #expect(found["IdentityId"] as? String == ids[0])
        #expect(found["DeveloperUserIdentifierList"] as? [String] == ["one"])
        let taken = pool.merging(["IdentityId": ids[0], "Logins": [Self.app: "two"]]) { $1 }
        #expect(try await failure(.getDeveloperToken, taken) == .resourceConflict)
        let both = pool.merging(["IdentityId": ids[0], "DeveloperUserIdentifier": "two"]) { $1 }
        #expect(try await failure(.lookupDeveloper, both) == .resourceConflict)
        #expect(try await failure(.lookupDeveloper, pool) == .invalidParameter)
        let merged = try await call(
            .mergeDevelopers,
            pool.merging([
                "DeveloperProviderName": Self.app, "SourceUserIdentifier": "one",
                "DestinationUserIdentifier": "two",
            ]) { $1 })
        #expect(merged["IdentityId"] as? String == ids[1])
        let asked = pool.merging(["IdentityId": ids[1], "MaxResults": 1]) { $1 }
        let page = try await call(.lookupDeveloper, asked)
        #expect(page["DeveloperUserIdentifierList"] as? [String] == ["one"])
        let next = try #require(page["NextToken"] as? String)
        let last = try await call(.lookupDeveloper, asked.merging(["NextToken": next]) { $1 })
        #expect(last["DeveloperUserIdentifierList"] as? [String] == ["two"])
        #expect(last["NextToken"] == nil)
        let forged = asked.merging(["NextToken": "AAAA"]) { $1 }
        #expect(try await failure(.lookupDeveloper, forged) == .invalidParameter)
        let unlinked = pool.merging([
            "IdentityId": ids[1], "DeveloperProviderName": Self.app,
            "DeveloperUserIdentifier": "one",
        ]) { $1 }
        #expect(try await failure(.unlinkDeveloper, unlinked) == nil)
        let gone = pool.merging(["DeveloperUserIdentifier": "one"]) { $1 }
        #expect(try await failure(.lookupDeveloper, gone) == .resourceNotFound)
    }

    @Test("a login is unlinked by who can show it")
    func unlinking() async throws {
        let alice = [Self.provider: Self.token("alice")]
        let id = try await id(alice)
        let mallory = [Self.provider: Self.token("mallory")]
        let cases: [([String: String], [String], APIFailure.Kind?)] = [
            (mallory, [Self.provider], .notAuthorized), ([:], [Self.provider], .invalidParameter),
            (alice, [], .invalidParameter), (alice, [Self.provider], nil),
        ]
        for (logins, removed, expected) in cases {
            let body: [String: Any] = [
                "IdentityId": id, "Logins": logins, "LoginsToRemove": removed,
            ]
            #expect(try await failure(.unlinkIdentity, body) == expected)
        }
        #expect(try await failure(.getCredentials, ["IdentityId": id]) == .notAuthorized)
        #expect(try await self.id(alice) != id)
    }

    @Test("identities are described, listed by pages and deleted")
    func management() async throws {
        var ids: Set<String> = []
        for number in 0..<7 {
            let logins = [Self.provider: Self.token("\(number)")]
            ids.insert(try await id(logins))
        }
        let one = try #require(ids.first)
        let described = try await call(.describeIdentity, ["IdentityId": one])
        #expect(described["Logins"] as? [String] == [Self.provider])
        #expect(described["CreationDate"] as? Double == 1_700_000_000)
        var listed: [String] = []
        var body: [String: Any] = ["IdentityPoolId": fixture.pool.text, "MaxResults": 3]
        for _ in 0..<4 {
            let page = try await call(.listIdentities, body)
            let identities = try #require(page["Identities"] as? [[String: Any]])
            #expect(identities.count <= 3)
            listed += identities.compactMap { $0["IdentityId"] as? String }
            guard let next = page["NextToken"] else { break }
            body["NextToken"] = next
        }
        #expect(listed.count == 7)
        #expect(Set(listed) == ids)
        for count in [0, 61] {
            body["MaxResults"] = count
            #expect(try await failure(.listIdentities, body) == .invalidParameter)
        }
        let deleted = try await call(.deleteIdentities, ["IdentityIdsToDelete": [one]])
        #expect((deleted["UnprocessedIdentityIds"] as? [Any])?.isEmpty == true)
        #expect(try await failure(.describeIdentity, ["IdentityId": one]) == .resourceNotFound)
        let none: [String: Any] = ["IdentityIdsToDelete": [String]()]
        #expect(try await failure(.deleteIdentities, none) == .invalidParameter)
    }

    @Test("an access key manages the identities of its own pools alone")
    func permissions() async throws {
        let id = try await id([Self.provider: Self.token("alice")])
        let identity = try #require(IdentityID(id))
        let elsewhere = Principal.developer(keyID: "k", pools: [fixture.otherPool])
        let own = Principal.identity(identity, pool: fixture.pool, isAuthenticated: true)
        let bodies: [(IdentityOperation, [String: Any])] = [
            (.describeIdentity, ["IdentityId": id]),
            (.listIdentities, ["IdentityPoolId": fixture.pool.text, "MaxResults": 5]),
            (.lookupDeveloper, ["IdentityPoolId": fixture.pool.text, "IdentityId": id]),
            (
                .getDeveloperToken,
                ["IdentityPoolId": fixture.pool.text, "Logins": [Self.app: "x"]]
            ),
        ]
        for (operation, body) in bodies {
            for principal in [elsewhere, own, .anonymous, .admin] {
                let refused = try await failure(operation, body, as: principal)
                #expect(refused == .notAuthorized, "\(operation) \(principal)")
            }
        }
        let ids: [String: Any] = ["IdentityIdsToDelete": [id]]
        let left = try await call(.deleteIdentities, ids, as: elsewhere)
        let entries = try #require(left["UnprocessedIdentityIds"] as? [[String: String]])
        #expect(entries == [["IdentityId": id, "ErrorCode": "AccessDenied"]])
        #expect(try await failure(.deleteIdentities, ids, as: own) == .notAuthorized)
        #expect(try await failure(.describeIdentity, ["IdentityId": id]) == nil)
    }
}
