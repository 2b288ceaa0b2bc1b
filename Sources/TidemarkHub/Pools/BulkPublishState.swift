import TidemarkSync

/// How far the publication of all that a pool has is, as it is kept in the dataset `hub:pools`
/// under the pool's id, a zero byte and `bulk`.
struct BulkPublishState: Hashable, Sendable {
    /// By their names in the service model.
    enum Status: String, Sendable {
        case notStarted = "NOT_STARTED"
        case inProgress = "IN_PROGRESS"
        case failed = "FAILED"
        case succeeded = "SUCCEEDED"
    }

    var status = Status.notStarted
    /// Milliseconds since 1970-01-01 UTC.
    var started: UInt64?
    var completed: UInt64?
    var failure: String?
    /// All identities up to this one are done.
    var lastIdentity: IdentityID?

    init() {}

    static func key(_ pool: PoolID) -> [UInt8] {
        Array(pool.text.utf8) + [0] + Array("bulk".utf8)
    }

    var encoded: [UInt8] {
        var object = JSONObject()
        object["status"] = .string(status.rawValue)
        object["started"] = started.map { .number(JSONNumber(Int(clamping: $0))) }
        object["completed"] = completed.map { .number(JSONNumber(Int(clamping: $0))) }
        object["failure"] = failure.map { .string($0) }
        object["lastIdentity"] = lastIdentity.map { .string($0.text) }
        return JSONValue.object(object).encoded
    }

    /// nil for bytes that are not of that form.
    init?(encoded bytes: [UInt8]) {
        guard let value = try? JSONValue(parsing: bytes),
            let status = value["status"]?.text.flatMap({ Status(rawValue: $0) })
        else { return nil }
        self.status = status
        started = value["started"]?.integer.flatMap { UInt64(exactly: $0) }
        completed = value["completed"]?.integer.flatMap { UInt64(exactly: $0) }
        failure = value["failure"]?.text
        lastIdentity = value["lastIdentity"]?.text.flatMap { IdentityID($0) }
    }
}
