import TidemarkSync

/// Posts notices to an endpoint of the app's service, which passes them on to APNs, Firebase or
/// whatever reaches the device:
///
///     {"platform": "GCM", "token": …, "deviceId": …, "data": {"source": "cognito-sync", …}}
///
/// A status of 2xx takes the notice, 410 says that the device is gone, and after any other it comes
/// again.
struct WebhookGateway: PushGateway {
    let webhook: Webhook

    static let limit = Duration.seconds(10)
    static let answerBytesMax = 65_536

    func deliver(_ notice: PushNotice) async throws {
        let delivery = "\(notice.deviceID)/\(notice.datasetName)/\(notice.syncCount)"
        do throws(WebhookFailure) {
            _ = try await webhook.post(
                Self.document(notice), delivery: delivery, limit: Self.limit,
                answerBytesMax: Self.answerBytesMax)
        } catch {
            guard error == .refused(status: 410) else { throw error }
            throw PushDeviceGone()
        }
    }

    static func document(_ notice: PushNotice) -> [UInt8] {
        let data = PushPayload.object(
            pool: notice.identityPoolID, identity: notice.identityID,
            dataset: notice.datasetName, count: notice.syncCount)
        let document = JSONObject([
            ("platform", JSONValue.string(notice.platform)),
            ("token", JSONValue.string(notice.token)),
            ("deviceId", JSONValue.string(notice.deviceID)),
            ("data", data),
        ])
        return JSONValue.object(document).encoded
    }
}
