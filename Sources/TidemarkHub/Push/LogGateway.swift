import Logging

/// Writes a line to the hub's log for each notice: for trying things out. The device's token is not
/// shown.
struct LogGateway: PushGateway {
    let logger: Logger

    func deliver(_ notice: PushNotice) async throws {
        logger.notice(
            "push",
            metadata: [
                "pool": "\(notice.identityPoolID)", "identity": "\(notice.identityID)",
                "dataset": "\(notice.datasetName)", "count": "\(notice.syncCount)",
                "device": "\(notice.deviceID)", "platform": "\(notice.platform)",
            ])
    }
}
