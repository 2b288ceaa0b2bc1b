import AsyncHTTPClient
import Logging
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// A console over identities in a store of their own, asked without HTTP.
struct ConsoleFixture: Sendable {
    let base: IdentityFixture
    let parts: HubParts
    let session: ConsoleSessions.Session

    var console: Console { parts.handler.endpoints.console }
    var store: Store { base.store }

    /// Runs a body with one, and lets go of what it holds.
    static func with(_ body: (ConsoleFixture) async throws -> Void) async throws {
        let base = try IdentityFixture()
        var settings = HubSettings()
        settings.adminToken = HubSecret(testToken)
        settings.pools = [PoolSettings(id: base.pool.text, name: "one")]
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let http = HTTPClient(eventLoopGroupProvider: .singleton)
        let server = HubServer(
            settings: settings, stores: base.threads.stores, extensions: HubExtensions(),
            registry: nil, environment: base.time, logger: logger, onListening: nil)
        let outcome: Result<Void, any Error>
        do {
            let parts = try HubParts(server, threads: base.threads, http: http)
            let session = parts.handler.endpoints.console.sessions.open().session
            try await body(ConsoleFixture(base: base, parts: parts, session: session))
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try await http.shutdown()
        try outcome.get()
    }

    /// What the API of the console answers.
    func ask(
        _ operation: ConsoleOperation, _ query: String = "", body: String = ""
    ) async throws -> JSONValue {
        let call = ConsoleCall(
            operation: operation,
            query: try ConsoleQuery(query, names: operation.parameters), body: Array(body.utf8),
            session: session, address: "192.0.2.1")
        return try JSONValue(parsing: try await console.answer(call))
    }

    /// Why it refuses; nil if it does not.
    func refusal(
        _ operation: ConsoleOperation, _ query: String = "", body: String = ""
    ) async throws -> APIFailure.Kind? {
        do {
            _ = try await ask(operation, query, body: body)
            return nil
        } catch let failure as APIFailure {
            return failure.kind
        }
    }

    /// All rows of a list, and the number of pages that they came on.
    func all(
        _ operation: ConsoleOperation, _ query: String = "", limit: Int
    ) async throws -> (rows: [JSONValue], pages: Int) {
        var (rows, pages) = ([JSONValue](), 0)
        var after = ""
        while true {
            let answer = try await ask(operation, "\(query)&limit=\(limit)\(after)")
            let page = answer.rows
            try #require(page.count <= limit)
            rows += page
            pages += 1
            guard let next = answer["next"]?.text else { return (rows, pages) }
            after = "&after=\(Self.encoded(next))"
        }
    }

    static func encoded(_ text: String) -> String { PercentCoding.encoded(text.utf8) }

    /// A record's name in links.
    static func id(_ key: String) -> String { RecordReference.key(Array(key.utf8)).text }
}

extension JSONValue {
    var rows: [JSONValue] { self["rows"]?.elements ?? [] }

    /// The text of bytes that are shown.
    func shown(_ name: String) -> String? { self[name]?["text"]?.text }
}
