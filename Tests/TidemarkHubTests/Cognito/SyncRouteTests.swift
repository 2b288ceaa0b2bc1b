import TestSupport
import Testing

@testable import TidemarkHub

/// Each operation has its method and path, and nothing else leads anywhere.
struct SyncRouteTests {
    static let id = "us-east-1%3A01234567-89ab-cdef-0123-456789abcdef"
    static let pool = "/identitypools/\(id)"
    static let identity = "\(pool)/identities/\(id)"
    static let dataset = "\(identity)/datasets/a%3Ab_c.d-e"

    /// As in the service model.
    static let routes: [(method: String, path: String, operation: SyncOperation)] = [
        ("POST", "\(pool)/bulkpublish", .bulkPublish),
        ("DELETE", dataset, .deleteDataset),
        ("GET", dataset, .describeDataset),
        ("GET", pool, .describeIdentityPoolUsage),
        ("GET", identity, .describeIdentityUsage),
        ("POST", "\(pool)/getBulkPublishDetails", .getBulkPublishDetails),
        ("GET", "\(pool)/events", .getCognitoEvents),
        ("GET", "\(pool)/configuration", .getIdentityPoolConfiguration),
        ("GET", "\(identity)/datasets", .listDatasets),
        ("GET", "/identitypools", .listIdentityPoolUsage),
        ("GET", "\(dataset)/records", .listRecords),
        ("POST", "\(pool)/identity/\(id)/device", .registerDevice),
        ("POST", "\(pool)/events", .setCognitoEvents),
        ("POST", "\(pool)/configuration", .setIdentityPoolConfiguration),
        ("POST", "\(dataset)/subscriptions/d%2F%201", .subscribeToDataset),
        ("DELETE", "\(dataset)/subscriptions/d%2F%201", .unsubscribeFromDataset),
        ("POST", dataset, .updateRecords),
    ]

    static let unknownPaths = [
        "", "/", "//", "/identitypools/", "/Identitypools", "\(pool)/", "\(pool)//events",
        "\(pool)/getbulkpublishdetails", "\(pool)/identities", "\(dataset)/records/",
        "\(dataset)/records/x", "\(pool)/identities/\(id)/device",
        "\(dataset)/../\(id)/datasets/x",
    ]

    static let wrongNames = [
        "/identitypools/nocolon", "/identitypools/a%3Ab%3Ac", "/identitypools/a%3AXYZ",
        "/identitypools/%3Aab", "/identitypools/a%3A", "/identitypools/..",
        "/identitypools/\(String(repeating: "a", count: 54))%3Aa", "/identitypools/a%00%3Aa",
        "/identitypools/%FF", "/identitypools/a%3", "\(identity)/datasets/a%2Fb",
        "\(identity)/datasets/..", "\(identity)/datasets/%2E%2E", "\(identity)/datasets/~x",
        "\(identity)/datasets/\(String(repeating: "a", count: 129))",
        "\(identity)/datasets/%C3%A9",
    ]

    private static func failure(_ method: String, _ path: String) -> APIFailure? {
        do throws(APIFailure) {
            _ = try SyncRoute(method: method, path: path)
            return nil
        } catch {
            return error
        }
    }

    @Test("all 17 operations are found, with what their paths name")
    func operations() throws {
        #expect(Set(Self.routes.map(\.operation)) == Set(SyncOperation.allCases))
        let id = "us-east-1:01234567-89ab-cdef-0123-456789abcdef"
        for (method, path, operation) in Self.routes {
            let route = try SyncRoute(method: method, path: path)
            #expect(route.operation == operation)
            #expect(route.poolID?.text == (path == "/identitypools" ? nil : id))
            let namesIdentity = path.contains("/identities/") || path.contains("/identity/")
            #expect(route.identityID?.text == (namesIdentity ? id : nil))
            #expect(route.datasetName?.text == (path.contains("/datasets/") ? "a:b_c.d-e" : nil))
            #expect(route.deviceID?.text == (path.contains("/subscriptions/") ? "d/ 1" : nil))
        }
    }

    @Test("another method is refused with those that there are")
    func otherMethods() {
        for (_, path, _) in Self.routes {
            let failure = Self.failure("PATCH", path)
            #expect(failure?.kind == .methodNotAllowed)
            let allowed = Self.routes.filter { $0.path == path }.map(\.method).sorted()
            #expect(failure?.allowedMethods == allowed.joined(separator: ", "))
        }
    }

    @Test("other paths lead nowhere", arguments: SyncRouteTests.unknownPaths)
    func unknownPath(_ path: String) {
        #expect(Self.failure("GET", path)?.kind == .unknownOperation)
    }

    @Test("names out of shape are refused", arguments: SyncRouteTests.wrongNames)
    func wrongName(_ path: String) {
        #expect(Self.failure("GET", path)?.kind == .invalidParameter)
    }

    @Test("names at their bounds are taken")
    func bounds() throws {
        let id = String(repeating: "a", count: 53) + "%3Aa"
        let name = String(repeating: "n", count: 128)
        let route = try SyncRoute(
            method: "GET", path: "/identitypools/\(id)/identities/\(id)/datasets/\(name)/records")
        #expect(route.poolID?.text.utf8.count == 55)
        #expect(route.datasetName?.text == name)
    }

    @Test("hostile paths are refused or named, and trap nothing")
    func hostilePaths() {
        var generator = SeededGenerator(Seed.drawn())
        let pieces = [
            "/", "//", "..", ".", "%2F", "%00", "%", "%zz", "identitypools", "identities",
            "datasets", "records", Self.id, "a", "\u{E9}", "%C3%A9", "?", "#", "subscriptions",
        ]
        for _ in 0..<5_000 {
            var path = generator.oneIn(3) ? Self.identity : ""
            for _ in 0..<generator.below(10) { path += generator.element(of: pieces) }
            guard let route = try? SyncRoute(method: "GET", path: path) else { continue }
            #expect(route.operation.method == "GET")
            #expect(route.identityID.map { APINames.isIdentifier($0.text) } ?? true)
            #expect(route.datasetName.map { APINames.isDatasetName($0.text) } ?? true)
        }
    }
}
