import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import TidemarkSync

/// Who may ask.
struct RequestAccess: Sendable {
    let authenticator: Authenticator
    let gate: IdentityGate
    /// nil if nobody has the hub's token.
    let admin: AdminTokenMode?
    let hasOpenMetrics: Bool

    /// Whether a header carries the hub's own token.
    func isAdmin(_ authorization: String?) async -> Bool {
        guard let admin, let token = Bearer.token(in: authorization) else { return false }
        return (try? await admin.principal(of: token)) != nil
    }
}

/// Where requests go.
struct RequestEndpoints: Sendable {
    let sync: SyncAPI
    let identity: IdentityAPI
    let native: NativeResponder
    let push: EventStream
    let console: Console
}

/// A request on its way to an operation.
struct RequestCall: Sendable {
    let request: Request
    let context: HubContext
    let address: String?
    let share: BodyShare

    var logger: Logger { context.logger }
}

extension RequestHandler {
    // MARK: Cognito Sync

    func syncAnswer(
        _ call: RequestCall, _ label: inout String
    ) async throws(APIFailure) -> Response {
        let signed = SigV4Request(call.request.head)
        let route = try SyncRoute(method: signed.method, path: signed.path)
        label = route.operation.rawValue
        let pending = try access.authenticator.begin(signed, for: .sync)
        try protection.rates.check(pending.principal)
        if route.operation.writes { try protection.disk.checkWriting() }
        let body = try await body(of: call, bytesMax: protection.settings.bodyBytesMax)
        try pending.finish(body: body)
        try Authorizer.check(route, pending.principal)
        let syncCall = SyncCall(
            route: route, query: try SyncQuery(signed), body: body,
            principal: pending.principal, clientContext: Self.clientContext(of: signed),
            requestID: call.context.id)
        let pass = try await access.gate.enter(syncCall)
        defer { pass.end() }
        return Self.json(bytes: try await endpoints.sync.answer(syncCall))
    }

    private static func clientContext(of request: SigV4Request) -> String? {
        request.onlyValue(of: "x-amz-client-context")
    }

    // MARK: Cognito Identity

    func identityAnswer(
        _ call: RequestCall, _ label: inout String
    ) async throws(APIFailure) -> Response {
        let signed = SigV4Request(call.request.head)
        let operation = try IdentityOperation(target: signed.onlyValue(of: "x-amz-target"))
        label = operation.rawValue
        var pending: PendingCall?
        if operation.isSigned {
            pending = try access.authenticator.begin(signed, for: .identity)
        } else if operation.makesIdentities {
            try protection.rates.checkNewIdentity(address: call.address)
        }
        let body = try await body(of: call, bytesMax: protection.settings.otherBodyBytesMax)
        try pending?.finish(body: body)
        var response = Self.json(
            bytes: try await endpoints.identity.answer(
                operation, body: body, principal: pending?.principal ?? .anonymous))
        response.headers[.contentType] = "application/x-amz-json-1.1"
        return response
    }

    // MARK: Push

    func pushAnswer(_ call: RequestCall) async throws(APIFailure) -> Response {
        let signed = SigV4Request(call.request.head)
        let pending = try access.authenticator.begin(signed, for: .sync)
        try protection.rates.check(pending.principal)
        let body = try await body(of: call, bytesMax: protection.settings.otherBodyBytesMax)
        try pending.finish(body: body)
        try await access.gate.check(pending.principal)
        let device = try signed.parameters().first { $0.name == "device" }?.value
        let endsAt = pending.expiresSeconds.map { UInt64(clamping: $0) &* 1_000 }
        let channel = call.context.channel
        return try await endpoints.push.response(
            to: pending.principal, device: device, endsAt: endsAt,
            cut: { channel.close(promise: nil) })
    }

    func bearer(_ call: RequestCall) async throws(APIFailure) -> Principal {
        try await access.authenticator.bearer(call.request.headers[.authorization])
    }

    // MARK: Bodies

    func body(of call: RequestCall, bytesMax: Int) async throws(APIFailure) -> [UInt8] {
        try await body(call.request.body, of: call, bytesMax: bytesMax)
    }

    /// - Parameter body: of the request, or what it was taken over by.
    func body(
        _ body: RequestBody, of call: RequestCall, bytesMax: Int
    ) async throws(APIFailure) -> [UInt8] {
        do throws(BodyFailure) {
            return try await protection.bodies.bytes(
                of: body, call.request.head, bytesMax: bytesMax, call.share)
        } catch {
            throw APIFailure(error)
        }
    }

    static func json(bytes: [UInt8]) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

extension APIFailure {
    init(_ failure: BodyFailure) {
        switch failure {
        case .tooLarge(let bytesMax):
            self.init(
                .requestEntityTooLarge, "Request must be smaller than \(bytesMax) bytes",
                closesConnection: true)
        case .incomplete:
            self.init(
                .serialization, "the request ended before its body did; repeat it",
                closesConnection: true)
        case .tooSlow:
            self.init(
                .requestTimeout, "the body comes too slowly; send it again over a better network",
                closesConnection: true)
        case .noRoom:
            self.init(
                .serviceUnavailable, "the hub holds as many requests as it can; come again",
                retryAfterSeconds: 1, closesConnection: true)
        case .encoded:
            self.init(
                .unsupportedMediaType,
                "the hub takes no compressed bodies; send it without Content-Encoding")
        }
    }
}

extension SyncOperation {
    /// Whether it changes what is in the store.
    var writes: Bool {
        switch self {
        case .bulkPublish, .deleteDataset, .registerDevice, .setCognitoEvents,
            .setIdentityPoolConfiguration, .subscribeToDataset, .unsubscribeFromDataset,
            .updateRecords:
            true
        case .describeDataset, .describeIdentityPoolUsage, .describeIdentityUsage,
            .getBulkPublishDetails, .getCognitoEvents, .getIdentityPoolConfiguration,
            .listDatasets, .listIdentityPoolUsage, .listRecords:
            false
        }
    }
}
