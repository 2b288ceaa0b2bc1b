import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Testing

@testable import TidemarkHub

/// What leads where, and how refusals look there.
struct RouteTests {
    @Test("each path has its route, and no other spelling of it has")
    func routes() {
        let routes: [(String, HubRoute)] = [
            ("/health", .health), ("/ready", .ready), ("/metrics", .metrics),
            ("/openapi.json", .openAPI), ("/v1/sync", .nativeSync), ("/v1/watch", .nativeWatch),
            ("/v1/push", .push), ("/", .cognitoIdentity), ("/identitypools", .cognitoSync),
            ("/identitypools/x", .cognitoSync), ("", .nothing), ("/health/", .nothing),
            ("//", .nothing), ("/Health", .nothing), ("/identitypool", .nothing),
        ]
        for (path, route) in routes { #expect(HubRoute(path: path) == route, "\(path)") }
        let head = HTTPRequest(
            method: .get, scheme: "http", authority: "a", path: "/v1/push?device=/health")
        #expect(HubRoute(head) == .push)
    }

    @Test("every operation is told to write if it is asked for with another method than GET")
    func writes() {
        for operation in SyncOperation.allCases {
            let mayWrite = operation.method != "GET"
            // One asks with POST, and changes nothing.
            let expected = operation == .getBulkPublishDetails ? false : mayWrite
            #expect(operation.writes == expected, "\(operation)")
        }
    }

    @Test("outside of the Cognito APIs a refusal has the hub's own form, and 401 for strangers")
    func refusals() throws {
        for kind in APIFailure.Kind.allCases {
            let failure = APIFailure(kind, "say \"this\"", retryAfterSeconds: 3)
            let refusal = Refusal(failure)
            let response = refusal.response
            #expect(response.headers[.contentType] == "application/json")
            #expect(response.headers[.retryAfter] == "3")
            #expect(!refusal.code.isEmpty && !refusal.code.contains("Exception"))
            #expect(refusal.code.first?.isLowercase == true)
        }
        #expect(Refusal(APIFailure(.notAuthorized, "x")).status == .unauthorized)
        #expect(Refusal(APIFailure(.tooManyRequests, "x")).code == "tooManyRequests")
        #expect(Refusal(APIFailure(.requestEntityTooLarge, "x")).status == .contentTooLarge)
        let quoted = Refusal(APIFailure(.internalError, "a \"b\" \\ c\n"))
        let body = #"{"message": "\#(quoted.message)"}"#
        let parsed = try JSONSerialization.jsonObject(with: Data(body.utf8))
        #expect(parsed as? [String: String] == ["message": "a \"b\" \\ c\n"])
    }

    @Test("the description of the API names every operation with its method and path")
    func openAPI() throws {
        let parsed = try JSONSerialization.jsonObject(with: Data(OpenAPIDocument.text().utf8))
        let document = try #require(parsed as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var found: Set<String> = []
        for (path, methods) in paths {
            for (method, operation) in methods {
                let members = try #require(operation as? [String: Any])
                let name = try #require(members["operationId"] as? String)
                #expect(found.insert(name).inserted, "\(name) comes twice")
                guard let known = SyncOperation(rawValue: name) else { continue }
                #expect(known.method.lowercased() == method)
                // Each part of the path that varies is described.
                let parameters = (members["parameters"] as? [[String: Any]] ?? [])
                    .filter { $0["in"] as? String == "path" }
                    .compactMap { $0["name"] as? String }
                #expect(parameters.count == path.filter { $0 == "{" }.count)
                for parameter in parameters { #expect(path.contains("{\(parameter)}")) }
            }
        }
        #expect(found.isSuperset(of: SyncOperation.allCases.map(\.rawValue)))
        #expect(found.isSuperset(of: ["Sync", "Watch", "Push", "CognitoIdentity", "Metrics"]))
    }

    @Test("the description has each route with each of its methods, and nothing besides")
    func describedRoutes() throws {
        let parsed = try JSONSerialization.jsonObject(with: Data(OpenAPIDocument.text().utf8))
        let document = try #require(parsed as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        var described: [HubRoute: Set<String>] = [:]
        for (path, methods) in paths {
            let route = HubRoute(path: path)
            #expect(route != .nothing, "\(path)")
            described[route, default: []].formUnion(methods.keys)
        }
        // What the console's page asks for is nobody else's: it changes with the page.
        let own: Set = [HubRoute.nothing, .console]
        for route in HubRoute.allCases where !own.contains(route) {
            let methods = try #require(described[route], "\(route)")
            guard let own = route.methods else { continue }
            #expect(methods == Set(own.map { $0.rawValue.lowercased() }), "\(route)")
        }
        // What stands in a header in place of a path is described, too.
        let identity = try #require(paths["/"]?["post"] as? [String: Any])
        let parameter = try #require((identity["parameters"] as? [[String: Any]])?.first)
        let targets = try #require((parameter["schema"] as? [String: Any])?["enum"] as? [String])
        #expect(targets == IdentityOperation.allCases.map(\.target))
        for target in targets {
            let operation = try IdentityOperation(target: target)
            #expect(operation.target == target)
        }
    }

    @Test("only a preflight of a browser is answered as one")
    func preflight() throws {
        let cors = CORS(origins: ["*"])
        var head = HTTPRequest(
            method: .options, scheme: "http", authority: "a", path: "/",
            headerFields: [.origin: "https://a.example"])
        #expect(cors.preflight(head)?.status == nil)
        head.headerFields[.accessControlRequestMethod] = "POST"
        let response = try #require(cors.preflight(head))
        #expect(response.headers[.accessControlAllowOrigin] == "https://a.example")
        let headers = try #require(response.headers[.accessControlAllowHeaders])
        for name in [
            "Authorization", "Content-Type", "X-Amz-Content-Sha256", "X-Amz-Date",
            "X-Amz-Security-Token", "X-Amz-Target", "X-Amz-User-Agent",
        ] {
            #expect(headers.contains(name), "\(name)")
        }
        head.method = .get
        #expect(cors.preflight(head)?.status == nil)
        head.method = .options
        let none = try #require(CORS(origins: []).preflight(head))
        #expect(none.headers[.accessControlAllowOrigin] == nil)
    }

    @Test("pages of allowed origins may read what their clients look at, and others nothing")
    func exposed() throws {
        let cors = CORS(origins: ["https://a.example"])
        var head = HTTPRequest(
            method: .get, scheme: "http", authority: "a", path: "/",
            headerFields: [.origin: "https://a.example"])
        var response = Response(status: .ok)
        cors.allow(head, &response)
        let exposed = try #require(response.headers[.accessControlExposeHeaders])
        for name in ["Date", "Retry-After", "x-amzn-ErrorType", "x-amzn-RequestId"] {
            #expect(exposed.contains(name), "\(name)")
        }
        head.headerFields[.origin] = "https://b.example"
        var refused = Response(status: .ok)
        cors.allow(head, &refused)
        #expect(refused.headers[.accessControlAllowOrigin] == nil)
        #expect(refused.headers[.accessControlExposeHeaders] == nil)
        #expect(refused.headers[.vary] == "Origin")
    }
}
