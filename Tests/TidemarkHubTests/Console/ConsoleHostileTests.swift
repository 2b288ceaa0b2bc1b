import HTTPTypes
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What no page would ask: refused by name, and nothing else happens.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ConsoleHostileTests {
    private static let noReplica = String(repeating: "0", count: 32)

    @Test(
        "names, numbers and cursors out of shape are refused as such",
        arguments: [
            (ConsoleOperation.datasets, "limit=0"), (.datasets, "limit=201"),
            (.datasets, "limit=1e3"), (.datasets, "limit=-1"), (.datasets, "limit=%00"),
            (.datasets, "limit=99999999999999999999"), (.datasets, "limit=5&limit=5"),
            (.datasets, "other=1"), (.datasets, "prefix=%3Cscript%3E"), (.datasets, "prefix=%ZZ"),
            (.datasets, "after=%FF"), (.datasets, "q=a%20b"), (.dataset, ""),
            (.dataset, "dataset=.."), (.dataset, "dataset=%2e%2e%2f"), (.dataset, "dataset=a%00b"),
            (.dataset, "dataset=%F0%9F%98%80"), (.identity, "identity=hub:0000"),
            (.identity, "identity="), (.identities, "sort=seen"), (.identities, "after=x"),
            (.records, "dataset=a&after=zz"), (.records, "dataset=a&after=k"),
            (.records, "dataset=a&after=c0"), (.records, "dataset=a&after=c99999999999999999999"),
            (.records, "dataset=a&deleted=2"), (.record, "dataset=a"),
            (.record, "dataset=a&id=kAA%3D"), (.record, "dataset=a&id=kAA&bytes=3"),
            (.record, "dataset=a&id=kAA&from=-1"), (.devices, "after=*"),
            (.devices, "identity=a/b"), (.conflicts, "state=none"), (.charts, "since=-5"),
            (.audit, "before=x"),
        ])
    func queries(_ operation: ConsoleOperation, _ query: String) async throws {
        try await ConsoleFixture.with { fixture in
            _ = try fixture.store.dataset("a")
            let refusal = try await fixture.refusal(operation, query)
            // Two dots are a name that a dataset may have.
            let expected: APIFailure.Kind =
                query == "dataset=.." ? .resourceNotFound : .invalidParameter
            #expect(refusal == expected, "\(operation) \(query)")
        }
    }

    @Test(
        "bodies out of shape are refused, and change nothing",
        arguments: [
            "", "[]", "{", "{\"dataset\": 5}", #"{"dataset": "a"}"#, #"{"dataset": "hub:pools"}"#,
            #"{"dataset": "a", "key": "", "value": "v"}"#,
            #"{"dataset": "a", "key": "k"}"#,
            #"{"dataset": "a", "key": "k", "id": "kaw", "value": "v"}"#,
            #"{"dataset": "a", "key": "k", "value": "v", "valueBase64": "dg=="}"#,
            #"{"dataset": "a", "key": "k", "valueBase64": "*"}"#,
            #"{"dataset": "a", "key": "k", "value": "v", "at": "x"}"#,
            #"{"dataset": "a", "key": "k", "value": "v", "at": "\#(noReplica):0"}"#,
            #"{"dataset": "a b", "key": "k", "value": "v"}"#,
        ])
    func bodies(_ body: String) async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("a")
            for operation in [ConsoleOperation.put, .delete, .resolve, .revoke] {
                let refusal = try await fixture.refusal(operation, body: body)
                let isTyped =
                    refusal == .invalidParameter || refusal == .serialization
                    || refusal == .resourceNotFound
                #expect(isTyped, "\(operation) \(body): \(String(describing: refusal))")
            }
            #expect(try dataset.syncCount == .zero)
            // What was not even an edit is not in the audit.
            #expect(try await fixture.ask(.audit).rows.isEmpty)
        }
    }

    @Test("paths lead where they are spelled to lead, with their methods, and nowhere else")
    func routes() throws {
        for (path, isFile) in [("/console/", true), ("/console/app.js", true), ("/console", false)]
        {
            let route = try ConsoleRoute(method: .get, path: path)
            if case .file = route { #expect(isFile) } else { #expect(!isFile) }
        }
        for operation in ConsoleOperation.allCases {
            let path = "/console/api/\(operation.rawValue)"
            for method in operation.methods {
                let route = try ConsoleRoute(method: method, path: path)
                guard case .operation(let found) = route else {
                    Issue.record("\(path) leads elsewhere")
                    continue
                }
                #expect(found == operation)
            }
            #expect(throws: APIFailure.self) { try ConsoleRoute(method: .put, path: path) }
        }
        for path in [
            "/console/../app.js", "/console//app.js", "/console/APP.JS", "/console/api",
            "/console/api/", "/console/api/Records", "/console/api/put/", "/console/app.js%00",
            "/console/Static/app.js", "/console/index.html/",
        ] {
            #expect(throws: APIFailure.self, "\(path)") {
                try ConsoleRoute(method: .get, path: path)
            }
        }
        #expect(HubRoute(path: "/console") == .console)
        #expect(HubRoute(path: "/console/api/x") == .console)
        #expect(HubRoute(path: "/consoles") == .nothing)
    }
}
