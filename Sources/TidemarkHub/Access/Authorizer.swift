/// Decides who may do what: the one place where what a path names is compared with who asks.
enum Authorizer {
    /// - Throws: `missingAuthenticationToken` for anybody; `notAuthorized` if the operation is not
    ///   for such credentials, the pool not for this key, or the identity not the caller's own.
    static func check(_ route: SyncRoute, _ principal: Principal) throws(APIFailure) {
        let audience = route.operation.audience
        switch principal {
        case .anonymous:
            throw APIFailure(
                .missingAuthenticationToken,
                "the request is not signed; sign it with Signature Version 4")
        case .admin:
            throw refused("\(route.operation.rawValue) takes AWS credentials, not the hub's token")
        case .developer(_, let pools):
            guard audience != .identity else {
                throw refused(
                    "\(route.operation.rawValue) takes the temporary credentials of an identity")
            }
            guard let pools else { return }
            guard let poolID = route.poolID, pools.contains(poolID) else {
                throw refused("the access key is not good for this identity pool")
            }
        case .identity(let identityID, let poolID, _):
            guard audience != .developer else {
                throw refused("\(route.operation.rawValue) takes the credentials of a developer")
            }
            // Every operation that is not for developers alone names both.
            guard route.poolID == poolID, route.identityID == identityID else {
                throw refused("these credentials are of another identity than the path names")
            }
        }
    }

    /// Whether somebody may use the console.
    ///
    /// - Throws: `notAuthorized` for anybody but who has the hub's own token.
    static func checkConsole(_ principal: Principal) throws(APIFailure) {
        guard principal == .admin else {
            throw refused("the console is for who has the hub's own token")
        }
    }

    private static func refused(_ message: String) -> APIFailure {
        APIFailure(.notAuthorized, message)
    }
}
