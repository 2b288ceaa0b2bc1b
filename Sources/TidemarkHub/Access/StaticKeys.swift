/// The permanent access keys of the settings: those of whoever runs the app's service.
struct StaticKeys: Sendable {
    private let keys: [String: CallerKey]

    /// - Parameter keys: as ``HubSettings/check()`` has found them to be right. One that is for
    ///   certain pools is good for none if their ids are none.
    init(_ keys: [HubSettings.AccessKey]) {
        var table: [String: CallerKey] = [:]
        for key in keys {
            let pools = key.pools.map { Set($0.compactMap { PoolID($0) }) }
            table[key.id] = CallerKey(
                principal: .developer(keyID: key.id, pools: pools), secret: key.secret.text,
                expiresSeconds: nil)
        }
        self.keys = table
    }

    /// - Throws: `unrecognizedClient`.
    func key(of claim: SigV4Claim) throws(APIFailure) -> CallerKey {
        guard let key = keys[claim.accessKeyID] else {
            throw APIFailure(
                .unrecognizedClient,
                "this hub has no such access key; correct it, or send the session token with "
                    + "temporary ones")
        }
        return key
    }
}
