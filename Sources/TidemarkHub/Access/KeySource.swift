import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import TidemarkSync

/// Where the bytes of key sets come from.
protocol KeySource: Sendable {
    /// - Throws: what kept them from being read; for the log.
    func bytes(of keys: IssuerSettings.Keys) async throws -> [UInt8]
}

/// Why a key set could not be read.
struct KeySourceError: Error, CustomStringConvertible {
    let description: String
}

/// Files, and addresses by HTTP.
struct SystemKeySource: KeySource {
    let http: HTTPClient
    let threads: HubThreads
    let clock: any SyncEnvironment

    /// A key set has some kilobytes.
    static let bytesMax = 1 << 20
    private static let timeoutSeconds: Int64 = 5

    func bytes(of keys: IssuerSettings.Keys) async throws -> [UInt8] {
        switch keys {
        case .shared: return []
        case .file(let path): return try await threads.read { _ in try Self.file(path) }
        case .url(let url): return try await document(url)
        }
    }

    private static func file(_ path: String) throws -> [UInt8] {
        let data = try Data(contentsOf: URL(filePath: path))
        guard data.count <= bytesMax else {
            throw KeySourceError(description: "\(path) has more than \(bytesMax) bytes")
        }
        return Array(data)
    }

    /// The whole of it within its time, however slowly it comes.
    private func document(_ url: String) async throws -> [UInt8] {
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            let http = http
            let clock = clock
            group.addTask { try await Self.fetched(url, http) }
            group.addTask {
                try await clock.sleep(for: .seconds(Self.timeoutSeconds))
                throw KeySourceError(
                    description: "\(url) takes more than \(Self.timeoutSeconds) s")
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }

    private static func fetched(_ url: String, _ http: HTTPClient) async throws -> [UInt8] {
        let response = try await http.execute(
            HTTPClientRequest(url: url), timeout: .seconds(timeoutSeconds))
        guard response.status == .ok else {
            throw KeySourceError(
                description: "\(url) answers with status \(response.status.code)")
        }
        let body = try await response.body.collect(upTo: bytesMax)
        return Array(body.readableBytesView)
    }
}
