import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import TidemarkSync

/// Asks a service with the API of Cognito for all that it holds. Repeats what may pass.
struct CognitoSource: Sendable {
    enum Service: String, Sendable {
        case sync = "cognito-sync"
        case identity = "cognito-identity"
    }

    let endpoints: [Service: ImportEndpoint]
    let signer: RequestSigner
    let http: HTTPClient
    let clock: any SyncEnvironment

    /// The first try included.
    static let attemptsMax = 7
    /// More than the largest dataset takes with all characters escaped.
    static let answerBytesMax = 16 << 20
    private static let secondsMax = TimeAmount.seconds(60)
    private static let identitiesAtOnce = 60
    private static let recordsAtOnce = 1_024
    private static let datasetsAtOnce = 64

    // MARK: - What there is

    /// A page of a pool's identities.
    func identities(
        of pool: PoolID, after token: String?
    ) async throws -> ListIdentitiesAnswer {
        try await ask(
            "ListIdentities",
            IdentityQuestion(
                poolID: pool.text, resultsMax: Self.identitiesAtOnce, nextToken: token))
    }

    func identity(_ id: IdentityID) async throws -> ListedIdentity {
        try await ask("DescribeIdentity", IdentityQuestion(identityID: id.text))
    }

    /// What the app's own service calls the users whose identity it is.
    func developerUsers(of id: IdentityID, in pool: PoolID) async throws -> [String] {
        var users: [String] = []
        var token: String?
        repeat {
            let answer: LookupDeveloperIdentityAnswer = try await ask(
                "LookupDeveloperIdentity",
                IdentityQuestion(
                    poolID: pool.text, identityID: id.text, resultsMax: Self.identitiesAtOnce,
                    nextToken: token))
            users += answer.users ?? []
            token = try Self.next(answer.nextToken, after: token)
        } while token != nil
        return users
    }

    /// The names of an identity's datasets.
    func datasets(of id: IdentityID, in pool: PoolID) async throws -> [String] {
        var names: [String] = []
        var token: String?
        repeat {
            let answer: ListDatasetsAnswer = try await get(
                ["identitypools", pool.text, "identities", id.text, "datasets"],
                [("maxResults", "\(Self.datasetsAtOnce)"), ("nextToken", token)])
            names += (answer.datasets ?? []).map(\.name)
            token = try Self.next(answer.nextToken, after: token)
        } while token != nil
        return names
    }

    /// All pages of a dataset's records, or of those that are newer; facts of the last page.
    func records(
        of name: String, _ id: IdentityID, in pool: PoolID, since count: UInt64?
    ) async throws -> (records: [ListRecordsAnswer.Record], facts: ListRecordsAnswer) {
        var records: [ListRecordsAnswer.Record] = []
        var token: String?
        while true {
            let answer: ListRecordsAnswer = try await get(
                [
                    "identitypools", pool.text, "identities", id.text, "datasets", name, "records",
                ],
                [
                    ("lastSyncCount", count.map { "\($0)" }), ("nextToken", token),
                    ("maxResults", "\(Self.recordsAtOnce)"),
                ])
            for record in answer.records ?? [] {
                guard (1...APINames.recordKeyCharactersMax * 4).contains(record.key.utf8.count)
                else {
                    throw HubImportError(
                        .badAnswer,
                        "a key of \(id)/\(name) has \(record.key.utf8.count) bytes, which no "
                            + "client can have written; ask whoever runs the service")
                }
                records.append(record)
            }
            token = try Self.next(answer.nextToken, after: token)
            if token == nil { return (records, answer) }
        }
    }

    /// The token of the next page; nil after the last one.
    ///
    /// - Throws: if it is the one before again, so that there would be no end.
    static func next(
        _ token: String?, after last: String?
    ) throws(HubImportError) -> String? {
        guard let token, !token.isEmpty else { return nil }
        guard token != last else {
            throw HubImportError(
                .badAnswer, "the service gives the same page again and again; ask whoever runs it")
        }
        return token
    }

    // MARK: - Asking

    private func get<Answer: Decodable & Sendable>(
        _ segments: [String], _ parameters: [(name: String, value: String?)]
    ) async throws -> Answer {
        let path = segments.map { "/" + PercentCoding.encoded($0.utf8) }.joined()
        let query = parameters.compactMap { parameter in
            parameter.value.map { parameter.name + "=" + PercentCoding.encoded($0.utf8) }
        }
        return try await exchange(
            .sync,
            SigV4Request(
                method: "GET", path: path, query: query.joined(separator: "&"), headers: []),
            body: [])
    }

    private func ask<Answer: Decodable & Sendable>(
        _ operation: String, _ question: IdentityQuestion
    ) async throws -> Answer {
        let body = Array(try JSONEncoder().encode(question))
        let headers = [
            (name: "content-type", value: "application/x-amz-json-1.1"),
            (name: "x-amz-target", value: "AWSCognitoIdentityService.\(operation)"),
        ]
        return try await exchange(
            .identity, SigV4Request(method: "POST", path: "/", query: "", headers: headers),
            body: body)
    }

    /// - Throws: `HubImportError`.
    private func exchange<Answer: Decodable & Sendable>(
        _ service: Service, _ request: SigV4Request, body: [UInt8]
    ) async throws -> Answer {
        var failure = HubImportError(.unreachable, "nothing was asked")
        for attempt in 0..<Self.attemptsMax {
            if attempt > 0 { try await clock.sleep(for: pause(before: attempt)) }
            let answer: (status: UInt, content: [UInt8])
            do {
                answer = try await send(service, request, body)
            } catch let error as HubImportError {
                throw error
            } catch {
                try Task.checkCancellation()
                failure = HubImportError(
                    .unreachable,
                    "\(endpoint(service).url) cannot be reached (\(error)); check the address")
                continue
            }
            if answer.status == 200 {
                let decoder = JSONDecoder()
                if let read = try? decoder.decode(Answer.self, from: Data(answer.content)) {
                    return read
                }
                throw HubImportError(
                    .badAnswer,
                    "\(endpoint(service).url)\(request.path) answers with what is no answer of "
                        + "\(service.rawValue); check the address")
            }
            failure = refusal(answer.status, answer.content, service, request)
            let isPassing =
                answer.status == 429 || answer.status >= 500 || Self.isThrottling(answer.content)
            guard isPassing else { throw failure }
        }
        throw failure
    }

    /// Doubles from a quarter of a second, up to 16 s, and half of it by chance.
    private func pause(before attempt: Int) -> Duration {
        let longest: UInt64 = min(16_000, 250 << UInt64(attempt))
        return .milliseconds(longest / 2 + clock.random() % (longest / 2))
    }

    private func send(
        _ service: Service, _ request: SigV4Request, _ body: [UInt8]
    ) async throws -> (status: UInt, content: [UInt8]) {
        let endpoint = endpoint(service)
        var request = request
        request.headers.append((name: "host", value: endpoint.host))
        let signed: SigV4Request
        do throws(APIFailure) {
            signed = try signer.signed(
                request, body: body, service: service.rawValue, milliseconds: clock.now())
        } catch {
            throw HubImportError(
                .invalidArgument, "the request cannot be signed: \(error.message)")
        }
        let query = signed.query.isEmpty ? "" : "?" + signed.query
        var message = HTTPClientRequest(url: endpoint.url + signed.path + query)
        message.method = HTTPMethod(rawValue: signed.method)
        for header in signed.headers {
            message.headers.add(name: header.name, value: header.value)
        }
        if !body.isEmpty { message.body = .bytes(ByteBuffer(bytes: body)) }
        let response = try await http.execute(message, timeout: Self.secondsMax)
        let content = try await response.body.collect(upTo: Self.answerBytesMax)
        return (response.status.code, Array(content.readableBytesView))
    }

    private func endpoint(_ service: Service) -> ImportEndpoint {
        guard let endpoint = endpoints[service] else {
            preconditionFailure("there is no endpoint of \(service.rawValue)")
        }
        return endpoint
    }

    private func refusal(
        _ status: UInt, _ content: [UInt8], _ service: Service, _ request: SigV4Request
    ) -> HubImportError {
        let answer = try? JSONDecoder().decode(RefusalAnswer.self, from: Data(content))
        let name = answer?.type?.split(separator: "#").last ?? "status \(status)"
        let words = (answer?.message ?? answer?.capitalMessage ?? "").prefix(500)
        let what = request.headers.first { $0.name == "x-amz-target" }?.value ?? request.path
        return HubImportError(
            .refused,
            "\(endpoint(service).url) refuses \(what): \(name) (\(status)) \(words); "
                + "check the access key, its rights and the region")
    }

    /// Some services say so with status 400.
    private static func isThrottling(_ content: [UInt8]) -> Bool {
        let answer = try? JSONDecoder().decode(RefusalAnswer.self, from: Data(content))
        guard let type = answer?.type else { return false }
        return type.hasSuffix("ThrottlingException") || type.hasSuffix("TooManyRequestsException")
    }
}

/// An address without a path.
struct ImportEndpoint: Hashable, Sendable {
    let url: String
    /// For the header of that name: with the port unless it is that of the scheme.
    let host: String

    init(_ text: String) throws(HubImportError) {
        guard let parts = Self.parts(of: text) else {
            throw HubImportError(
                .invalidArgument,
                "\(text.debugDescription) is no address of a service; give one such as "
                    + "https://cognito-sync.us-east-1.amazonaws.com")
        }
        url = parts.scheme + parts.host
        host = parts.host
    }

    private static func parts(of text: String) -> (scheme: String, host: String)? {
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")] {
            guard text.lowercased().hasPrefix(scheme) else { continue }
            var host = text.dropFirst(scheme.count)
            while host.hasSuffix("/") { host.removeLast() }
            guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
                !host.contains(where: { "/?#@".contains($0) })
            else { return nil }
            if host.hasSuffix(port) { host = host.dropLast(port.count) }
            return (scheme: scheme, host: String(host))
        }
        return nil
    }

    /// Where the identities are whose datasets are here: beside it at the real service, and at the
    /// same address at others.
    var ofIdentities: String {
        let (sync, identity) = ("://cognito-sync.", "://cognito-identity.")
        guard url.hasSuffix(".amazonaws.com"), let place = url.firstRange(of: sync) else {
            return url
        }
        return "\(url[..<place.lowerBound])\(identity)\(url[place.upperBound...])"
    }
}
