import Tidemark
import TidemarkSync

/// Answers what configures a pool, events, push and streams, and publishes all that it has.
struct PoolOperations: SyncOperationHandler {
    let book: PoolBook
    let threads: HubThreads
    let bulk: BulkPublisher

    let operations: Set<SyncOperation> = [
        .bulkPublish, .getBulkPublishDetails, .getCognitoEvents, .getIdentityPoolConfiguration,
        .setCognitoEvents, .setIdentityPoolConfiguration,
    ]

    func answer(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let pool = try call.pool()
        guard let record = book.record(of: pool) else {
            throw APIFailure(.resourceNotFound, "there is no such identity pool")
        }
        switch call.route.operation {
        case .getIdentityPoolConfiguration:
            return Self.configuration(of: pool, record)
        case .setIdentityPoolConfiguration:
            let body = try ConfigurationBody(call.body)
            return Self.configuration(of: pool, try await setConfiguration(of: pool, body))
        case .getCognitoEvents:
            return Self.events(record)
        case .setCognitoEvents:
            try await setEvents(of: pool, try ConfigurationBody(call.body))
            return Array("{}".utf8)
        case .bulkPublish:
            try await bulk.begin(pool)
            let answer = JSONObject([("IdentityPoolId", JSONValue.string(pool.text))])
            return JSONValue.object(answer).encoded
        case .getBulkPublishDetails:
            return Self.details(of: pool, try await bulk.state(of: pool))
        default:
            throw APIFailure(.unknownOperation, "no operation has this path")
        }
    }

    // MARK: - Changes

    /// A block that is missing stays as it is.
    private func setConfiguration(
        of pool: PoolID, _ body: ConfigurationBody
    ) async throws(APIFailure) -> PoolRecord {
        let push = try Self.pushSync(in: body)
        let stream = try Self.stream(in: body)
        if stream?.isEnabled ?? false, book.behavior(of: pool).stream == nil {
            throw APIFailure(
                .invalidParameter,
                "the hub's settings name no stream for this pool; name one, and start it anew")
        }
        return try await update(pool) { record in
            if let push { record.pushSync = push }
            if let stream { record.stream = stream }
        }
    }

    /// What is given is merged into what is there; an empty value removes it.
    private func setEvents(of pool: PoolID, _ body: ConfigurationBody) async throws(APIFailure) {
        guard let events = try body.structure("Events") else {
            throw APIFailure(.invalidParameter, "Events is missing")
        }
        if let unknown = events.names.first(where: { $0 != Self.syncTrigger }) {
            throw APIFailure(
                .invalidParameter,
                "there is no event \(unknown); the only one is \(Self.syncTrigger)")
        }
        guard let name = try events.text(Self.syncTrigger) else { return }
        guard name.isEmpty || PoolRules.isTriggerName(name) else {
            throw APIFailure(.invalidParameter, "\(Self.syncTrigger) is too long")
        }
        if !name.isEmpty, book.behavior(of: pool).trigger == nil {
            throw APIFailure(
                .invalidParameter,
                "the hub's settings name no trigger for this pool; name one, and start it anew")
        }
        _ = try await update(pool) { $0.syncTrigger = name.isEmpty ? nil : name }
    }

    private func update(
        _ pool: PoolID, _ change: @escaping @Sendable (inout PoolRecord) -> Void
    ) async throws(APIFailure) -> PoolRecord {
        let book = book
        return try await threads.write { store in
            do {
                return try book.update(pool, in: store, change)
            } catch let error as StoreError where error.code == .versionMismatch {
                throw APIFailure(
                    .concurrentModification,
                    "somebody else changes this pool, too; read it and change it again")
            }
        }
    }

    static let syncTrigger = "SyncTrigger"

    private static func pushSync(
        in body: ConfigurationBody
    ) throws(APIFailure) -> PoolRecord.PushSync? {
        guard let block = try body.structure("PushSync") else { return nil }
        let applications = try block.texts("ApplicationArns") ?? []
        guard applications.count <= 64, applications.allSatisfy(PoolRules.isApplicationARN) else {
            throw APIFailure(
                .invalidParameter,
                "ApplicationArns must be at most 64 of the form "
                    + "arn:aws:sns:REGION:ACCOUNT:app/PLATFORM/NAME")
        }
        return PoolRecord.PushSync(
            applicationARNs: applications, roleARN: try role(in: block))
    }

    private static func stream(
        in body: ConfigurationBody
    ) throws(APIFailure) -> PoolRecord.Stream? {
        guard let block = try body.structure("CognitoStreams") else { return nil }
        let name = try block.text("StreamName")
        guard name.map(PoolRules.isStreamName) ?? true else {
            throw APIFailure(.invalidParameter, "StreamName must have 1...128 characters")
        }
        let status = try block.text("StreamingStatus")
        guard status == nil || status == "ENABLED" || status == "DISABLED" else {
            throw APIFailure(.invalidParameter, "StreamingStatus must be ENABLED or DISABLED")
        }
        guard status != "ENABLED" || name != nil else {
            throw APIFailure(.invalidParameter, "StreamName is missing")
        }
        return PoolRecord.Stream(
            name: name, roleARN: try role(in: block), isEnabled: status == "ENABLED")
    }

    /// Kept and told, but of no effect here.
    private static func role(in block: ConfigurationBody) throws(APIFailure) -> String? {
        let role = try block.text("RoleArn")
        guard role.map(PoolRules.isRoleARN) ?? true else {
            throw APIFailure(
                .invalidParameter, "RoleArn must be of the form arn:aws:iam::ACCOUNT:role/NAME")
        }
        return role
    }

    // MARK: - Answers

    private static func configuration(of pool: PoolID, _ record: PoolRecord) -> [UInt8] {
        var answer = JSONObject([("IdentityPoolId", JSONValue.string(pool.text))])
        if let pushSync = record.pushSync {
            var block = JSONObject()
            block["ApplicationArns"] = .array(pushSync.applicationARNs.map { .string($0) })
            block["RoleArn"] = pushSync.roleARN.map { .string($0) }
            answer["PushSync"] = .object(block)
        }
        if let stream = record.stream {
            var block = JSONObject()
            block["StreamName"] = stream.name.map { .string($0) }
            block["RoleArn"] = stream.roleARN.map { .string($0) }
            block["StreamingStatus"] = stream.isEnabled ? "ENABLED" : "DISABLED"
            answer["CognitoStreams"] = .object(block)
        }
        return JSONValue.object(answer).encoded
    }

    private static func events(_ record: PoolRecord) -> [UInt8] {
        var events = JSONObject()
        events[syncTrigger] = record.syncTrigger.map { .string($0) }
        return JSONValue.object(JSONObject([("Events", JSONValue.object(events))])).encoded
    }

    private static func details(of pool: PoolID, _ state: BulkPublishState) -> [UInt8] {
        var answer = JSONObject([("IdentityPoolId", JSONValue.string(pool.text))])
        answer["BulkPublishStatus"] = .string(state.status.rawValue)
        answer["BulkPublishStartTime"] = state.started.flatMap(seconds)
        answer["BulkPublishCompleteTime"] = state.completed.flatMap(seconds)
        answer["FailureMessage"] = state.failure.map { .string($0) }
        return JSONValue.object(answer).encoded
    }

    /// Since 1970, with milliseconds behind the point.
    private static func seconds(_ milliseconds: UInt64) -> JSONValue? {
        let rest = String(milliseconds % 1_000)
        let digits = String(repeating: "0", count: 3 - rest.count) + rest
        return JSONNumber("\(milliseconds / 1_000).\(digits)").map { .number($0) }
    }
}
