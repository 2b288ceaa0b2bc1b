/// What an access key is, by which a request says it was signed: whose, and what it must have been
/// signed with. Nothing is proved by it; the signature does that.
struct CallerKey: Sendable {
    let principal: Principal
    let secret: String
    /// When it ends, in seconds since 1970-01-01 UTC; nil for never.
    let expiresSeconds: Int64?
}
