import Foundation
import Logging
import ServiceLifecycle
import TestSupport
import Testing
import Tidemark
import TidemarkHub
import TidemarkSync

/// The example of the article *ServiceMesh* is the code of `ServiceMesh.swift`, to the letter, and
/// it works.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct ServiceMeshTests {
    /// A service of the mesh that runs, on a free port.
    private struct Running {
        let url: String
        let services: ServiceGroup
        let task: Task<Void, any Error>

        init(_ store: Store, neighbours: [String]) async throws {
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            var logger = Logger(label: "test")
            logger.logLevel = .critical
            let services = meshService(
                store,
                HubConfiguration(
                    port: 0, token: testToken, threads: 2,
                    onListening: { continuation.yield($0) }),
                neighbours: neighbours, logger: logger)
            task = Task {
                defer { continuation.finish() }
                try await services.run()
            }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            self.services = services
            url = "http://127.0.0.1:\(port)"
        }

        func stop() async throws {
            await services.triggerGracefulShutdown()
            try await task.value
        }
    }

    /// Looks again and again until all of them know of so many brushes, and all hold the same.
    private func expect(
        _ count: Int, in stores: [Store], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let begin = ContinuousClock.now
        while true {
            let found = try stores.map { try pieces(of: "brush", in: $0) }
            let digests = try stores.map { try $0.dataset("stock").digest() }
            if Set(found) == [count], Set(digests).count == 1 { return }
            guard ContinuousClock.now - begin < Patience.limit else {
                Issue.record(
                    "\(found) in place of \(count), \(digests)", sourceLocation: sourceLocation)
                return
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    @Test func theArticleQuotesTheExample() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let example = try String(
            contentsOf: folder.appendingPathComponent("ServiceMesh.swift"), encoding: .utf8)
        let article = "../../../Sources/TidemarkSync/TidemarkSync.docc/ServiceMesh.md"
        let text = try String(
            contentsOf: folder.resolvingSymlinksInPath().appendingPathComponent(article),
            encoding: .utf8)
        #expect(text.contains("```swift\n" + example + "```"))
    }

    /// Three services book at the same time, one of them goes on alone for a while, and comes back
    /// at another address.
    @Test func threeServicesShareTheirStock() async throws {
        let directory = try TemporaryDirectory()
        let stores = try ["a", "b", "c"].map { try directory.store($0) }
        let a = try await Running(stores[0], neighbours: [])
        var b = try await Running(stores[1], neighbours: [a.url])
        let c = try await Running(stores[2], neighbours: [a.url, b.url])
        for (number, store) in stores.enumerated() {
            try book(10 * (number + 1), of: "brush", in: store)
        }
        try await expect(60, in: stores)
        try await b.stop()
        for (number, store) in stores.enumerated() {
            try book(-1 - number, of: "brush", in: store)
        }
        try await expect(56, in: [stores[0], stores[2]])
        #expect(try pieces(of: "brush", in: stores[1]) == 58)
        b = try await Running(stores[1], neighbours: [a.url, c.url])
        try await expect(54, in: stores)
        for service in [c, b, a] { try await service.stop() }
    }
}
