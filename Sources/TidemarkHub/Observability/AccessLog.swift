import Logging

/// The lines that requests leave in the log. Nothing in them is a secret: neither heads nor
/// queries, which carry signatures, nor bodies are logged.
struct AccessLog: Sendable {
    /// Whether each answer has a line, or only refusals and failures.
    let logsAll: Bool
    private let refusals: RefusalMeter

    /// A day of so many is some gigabytes.
    private static let refusalsPerSecondMax = 100

    init(logsAll: Bool) {
        self.logsAll = logsAll
        refusals = RefusalMeter(linesPerSecond: Self.refusalsPerSecondMax)
    }

    /// - Parameters:
    ///   - route: as metrics call it.
    ///   - code: of the refusal; nil if there was none.
    func write(
        _ logger: Logger, method: String, route: String, status: Int, code: String?,
        address: String?, duration: Duration
    ) {
        guard logsAll || code != nil || status >= 500 else { return }
        var omitted = 0
        if !logsAll {
            guard let count = refusals.admit(at: .now) else { return }
            omitted = count
        }
        var metadata: Logger.Metadata = [
            // A method can be any word: a long one says no more than its beginning.
            "method": "\(method.prefix(16))", "route": "\(route)", "status": "\(status)",
            "duration": "\(duration)",
        ]
        if let code { metadata["code"] = "\(code)" }
        // Metrics count them all.
        if omitted > 0 { metadata["omitted"] = "\(omitted)" }
        if let address { metadata["address"] = "\(address)" }
        let level: Logger.Level = status >= 500 ? .error : code == nil ? .info : .notice
        logger.log(
            level: level, code == nil ? "request answered" : "request refused", metadata: metadata)
    }
}
