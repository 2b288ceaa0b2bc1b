import Foundation
import Glibc
import Synchronization
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// What the other side of an exchange is told to do between exchanges. Each is answered with a
/// line; that of a digest is the digest.
enum HubOrder: Codable, Sendable {
    case change(count: Int, generation: Int)
    case rewrite(lower: Int, upper: Int, generation: Int)
    case digest

    func perform(on store: Store, _ workingSet: WorkingSet) throws -> String {
        let dataset = try store.dataset(WorkingSet.datasetName)
        switch self {
        case .change(let count, let generation):
            try workingSet.write(
                workingSet.changed(count, generation: generation), generation: generation,
                to: dataset)
        case .rewrite(let lower, let upper, let generation):
            try workingSet.write(lower..<upper, generation: generation, to: dataset)
        case .digest:
            return try dataset.digest().description
        }
        return "done"
    }
}

/// Counts the bytes of all messages, greetings included, which results leave out where one
/// greeting is for several datasets.
final class CountingTransport: SyncTransport {
    private let transport: any SyncTransport
    private let total = Atomic(0)

    var messageBytes: Int { total.load(ordering: .relaxed) }

    init(_ transport: any SyncTransport) {
        self.transport = transport
    }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let answer = try await transport.send(request)
        total.wrappingAdd(request.count + answer.count, ordering: .relaxed)
        return answer
    }
}

/// The side that is asked, wherever it runs.
protocol HubUnderTest: AnyObject {
    var transport: CountingTransport { get }
    /// Begins what `answer` waits for, so that both sides can work at the same time.
    func give(_ order: HubOrder) throws
    func answer() throws -> String
    /// What has passed so far; nil if nothing passes over a wire.
    func wireBytes() -> Int?
    func stop() async throws
}

/// The hub in a process of its own, behind HTTP on the loopback interface.
final class HubProcess: HubUnderTest {
    static let token = "sync-bench"

    private let child: ChildProcess
    let port: Int
    private let http: HTTPTransport

    let transport: CountingTransport

    init(storeAt path: String, _ workingSet: WorkingSet) throws {
        child = try ChildProcess(
            "/proc/self/exe",
            [
                "hub", path, "--n", "\(workingSet.recordCount)",
                "--value-bytes", "\(workingSet.valueBytes)",
            ])
        let line = try child.nextLine()
        guard let port = Int(line) else {
            throw BenchmarkFailure("the hub tells no port but \(line)")
        }
        self.port = port
        http = HTTPTransport(url: "http://127.0.0.1:\(port)", token: Self.token)
        transport = CountingTransport(http)
    }

    var process: pid_t { child.identifier }

    func give(_ order: HubOrder) throws {
        try child.send(String(decoding: try JSONEncoder().encode(order), as: UTF8.self))
    }

    func answer() throws -> String { try child.nextLine() }

    func wireBytes() -> Int? { Traffic.bytes(toPort: port) }

    func stop() async throws {
        await http.shutdown()
        try require(child.finish(), "the hub did not end well")
    }
}

/// The same responder in this process, without HTTP or a socket in between.
final class HubInMemory: HubUnderTest {
    private let store: Store
    private let workingSet: WorkingSet
    private var answers: [String] = []

    let transport: CountingTransport

    init(storeAt path: String, _ workingSet: WorkingSet) throws {
        store = try Store.open(at: path, options: StoreOptions(durability: .process))
        self.workingSet = workingSet
        transport = CountingTransport(InMemoryTransport(SyncResponder(store: store)))
    }

    func give(_ order: HubOrder) throws {
        answers.append(try order.perform(on: store, workingSet))
    }

    func answer() throws -> String {
        try require(!answers.isEmpty, "an answer without an order")
        return answers.removeFirst()
    }

    func wireBytes() -> Int? { nil }

    func stop() async throws { try store.close() }
}
