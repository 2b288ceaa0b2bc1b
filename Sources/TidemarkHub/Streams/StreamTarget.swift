/// Where the changes of a pool go.
protocol StreamTarget: Sendable {
    /// Takes one document of JSON. What returns was taken for good; what throws comes again.
    ///
    /// - Parameter delivery: names the document: the same each time that it comes.
    func deliver(_ document: [UInt8], delivery: String) async throws
}

/// Posts each document to an endpoint of the app's service.
struct WebhookTarget: StreamTarget {
    let webhook: Webhook

    static let limit = Duration.seconds(30)
    static let answerBytesMax = 65_536

    func deliver(_ document: [UInt8], delivery: String) async throws {
        _ = try await webhook.post(
            document, delivery: delivery, limit: Self.limit, answerBytesMax: Self.answerBytesMax)
    }
}
