import HTTPTypes

/// All that stands between a request and the work that it asks for.
struct RequestProtection: Sendable {
    let settings: ProtectionSettings
    let connections: ConnectionLimits
    let rates: RequestRates
    let budget: BodyBudget
    let bodies: RequestBodyReading
    let disk: DiskGuard

    /// The parser bounds heads of HTTP/1.1 and refuses them with 400; those of HTTP/2 come through
    /// another one, with bounds of its own.
    ///
    /// - Throws: `requestHeadTooLarge`, `unsupportedMediaType`.
    func checkHead(of head: HTTPRequest) throws(APIFailure) {
        var bytes = (head.path ?? "").utf8.count + (head.authority ?? "").utf8.count
        for field in head.headerFields {
            bytes += field.name.rawName.utf8.count + field.value.utf8.count + 4
        }
        guard head.headerFields.count <= settings.headFieldsMax, bytes <= settings.headBytesMax
        else {
            throw APIFailure(
                .requestHeadTooLarge,
                "a request's head has at most \(settings.headFieldsMax) fields and "
                    + "\(settings.headBytesMax) bytes", closesConnection: true)
        }
        try checkEncoding(of: head)
    }

    /// Nothing is unpacked, so nothing small becomes large.
    ///
    /// - Throws: `unsupportedMediaType`.
    func checkEncoding(of head: HTTPRequest) throws(APIFailure) {
        guard let encoding = head.headerFields[.contentEncoding],
            encoding.lowercased() != "identity"
        else { return }
        throw APIFailure(BodyFailure.encoded)
    }
}
