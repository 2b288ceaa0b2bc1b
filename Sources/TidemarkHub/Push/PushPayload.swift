import TidemarkSync

/// What a device is sent: the members of Cognito's push sync.
enum PushPayload {
    static func object(
        pool: String, identity: String, dataset: String, count: UInt64
    ) -> JSONValue {
        .object(
            JSONObject([
                ("source", JSONValue.string("cognito-sync")),
                ("identityPoolId", JSONValue.string(pool)),
                ("identityId", JSONValue.string(identity)),
                ("datasetName", JSONValue.string(dataset)),
                ("syncCount", JSONValue.number(JSONNumber(Int(clamping: count)))),
            ]))
    }
}
