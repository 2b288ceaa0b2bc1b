import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// A guest of a served hub, who signs its requests and sends each on a connection of its own.
struct ServedClient: Sendable {
    struct Answer: Sendable {
        let status: Int
        /// By their names in lower case.
        let fields: [String: String]
        let body: String

        /// What clients take a refusal's name from.
        var error: String? { fields["x-amzn-errortype"] }
        var retryAfter: Int? { fields["retry-after"].flatMap { Int($0) } }
        var json: JSONValue? { try? JSONValue(parsing: Array(body.utf8)) }

        /// nil as long as not all of it is there.
        init?(_ text: String) {
            let bytes = Array(text.utf8)
            let gap = Array("\r\n\r\n".utf8)
            guard
                let end = bytes.indices.first(where: { bytes[$0...].starts(with: gap) })
            else { return nil }
            let lines = String(decoding: bytes[..<end], as: UTF8.self).split(
                whereSeparator: \.isNewline)
            guard let status = lines.first.flatMap({ Int($0.dropFirst(9).prefix(3)) }) else {
                return nil
            }
            var fields: [String: String] = [:]
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                guard parts.count == 2 else { continue }
                fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
            }
            let content = bytes[(end + gap.count)...]
            guard content.count >= fields["content-length"].flatMap({ Int($0) }) ?? 0 else {
                return nil
            }
            self.status = status
            self.fields = fields
            body = String(decoding: content, as: UTF8.self)
        }
    }

    let port: Int
    let identity: String
    private let signer: RequestSigner

    static let pool = "us-east-1:3e0e5eb2-2c5c-4bba-8a4d-bd1ad5c1c6f1"

    /// A hub in whose pool guests are let in.
    static var settings: HubSettings {
        var settings = HubSettings()
        settings.adminToken = HubSecret(testToken)
        var own = PoolSettings(id: pool, name: "guests")
        own.allowsGuests = true
        settings.pools = [own]
        return settings
    }

    /// A new guest.
    init(_ port: Int) async throws {
        self.port = port
        let found = try await Self.identity(
            port, "GetId", #"{"IdentityPoolId": "\#(Self.pool)"}"#)
        identity = try #require(found.json?["IdentityId"]?.text)
        let given = try await Self.identity(
            port, "GetCredentialsForIdentity", #"{"IdentityId": "\#(identity)"}"#)
        let credentials = try #require(given.json?["Credentials"])
        signer = RequestSigner(
            accessKeyID: try #require(credentials["AccessKeyId"]?.text),
            secret: HubSecret(try #require(credentials["SecretKey"]?.text)),
            token: HubSecret(try #require(credentials["SessionToken"]?.text)),
            region: "us-east-1")
    }

    // MARK: - Requests

    /// Text in, and the whole answer out. It is not waited for the end of the connection.
    static func exchange(_ port: Int, _ request: String) async throws -> Answer {
        let connection = try RawConnection(port: port)
        // What is refused early may be cut off.
        _ = try await connection.send(request)
        let text = try await connection.receive { Answer($0) == nil }
        return try #require(Answer(text), "\(text.prefix(200))")
    }

    /// An operation of Cognito Identity that nobody signs.
    static func identity(
        _ port: Int, _ operation: String, _ body: String
    ) async throws -> Answer {
        try await exchange(
            port,
            "POST / HTTP/1.1\r\nHost: a\r\n"
                + "X-Amz-Target: AWSCognitoIdentityService.\(operation)\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// An operation of Cognito Sync, about this identity.
    ///
    /// - Parameters:
    ///   - path: behind that of the identity.
    ///   - declared: the length that is declared of the body, if another one.
    func sync(
        _ method: String, _ path: String, query: String = "", body: String = "",
        declared: Int? = nil
    ) async throws -> Answer {
        let own = "/identitypools/\(Self.pool)/identities/\(identity)\(path)"
        let request = SigV4Request(
            method: method, path: own, query: query,
            headers: [(name: "host", value: "127.0.0.1:\(port)")])
        let signed = try signer.signed(
            request, body: Array(body.utf8), service: "cognito-sync",
            milliseconds: SystemSyncEnvironment().now())
        var text = "\(method) \(own)\(query.isEmpty ? "" : "?\(query)") HTTP/1.1\r\n"
        for (name, value) in signed.headers { text += "\(name): \(value)\r\n" }
        text += "content-length: \(declared ?? body.utf8.count)\r\n\r\n\(body)"
        return try await Self.exchange(port, text)
    }

    /// Lists and pushes, as clients do; nil removes.
    func write(
        _ dataset: String, _ values: [(key: String, value: String?)]
    ) async throws -> Answer {
        let listing = try await sync("GET", "/datasets/\(dataset)/records")
        let token = try #require(listing.json?["SyncSessionToken"]?.text, "\(listing.body)")
        var counts: [String: Int] = [:]
        for record in listing.json?["Records"]?.elements ?? [] {
            guard let key = record["Key"]?.text else { continue }
            counts[key] = record["SyncCount"]?.integer
        }
        let patches = values.map { key, value -> String in
            let count = counts[key] ?? 0
            let rest = value.map { #""Op": "replace", "Value": \#(JSONText.quoted($0))"# }
            return #"{"Key": \#(JSONText.quoted(key)), "SyncCount": \#(count), "#
                + (rest ?? #""Op": "remove""#) + "}"
        }
        return try await sync(
            "POST", "/datasets/\(dataset)",
            body: #"{"SyncSessionToken": \#(JSONText.quoted(token)), "RecordPatches": ["#
                + patches.joined(separator: ", ") + "]}")
    }
}
