import ArgumentParser
import Logging
import ServiceLifecycle
import Tidemark
import TidemarkHub
import TidemarkObservability
import UnixSignals

struct ServeCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a store to many replicas, as a hub, over HTTP.",
        discussion: """
            Prints one line, 'listening on http://HOST:PORT', once it accepts connections, and \
            logs to standard error. SIGTERM and SIGINT end it in order: requests under way are \
            answered, and the store is closed. The store is created if missing.
            """)

    @OptionGroup var target: StoreArgument
    @Option(
        help: ArgumentHelp(
            "Where to listen; port 0 takes a free one. An IPv6 address stands in brackets.",
            valueName: "host:port"))
    var listen: String
    @OptionGroup var secret: TokenOption
    @OptionGroup var writing: WritingOptions
    @OptionGroup var retention: HistoryOption

    mutating func run(_ output: OutputStream) async throws {
        let address = try ListenAddress(listen)
        let token = try secret.token()
        var logger = Logger(label: "tidemark") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .info
        var options = writing.options
        options.historyVersions = retention.history
        options.compactsAutomatically = true
        let store = try Store.open(
            at: target.store, options: options,
            observer: StoreTelemetry(name: target.store, logger: logger))
        let hub = Hub(
            store: store,
            configuration: HubConfiguration(
                host: address.host, port: address.port, token: token,
                onListening: { port in
                    reportListening("http://\(address.urlHost):\(port)")
                }),
            logger: logger)
        let services = ServiceGroup(
            services: [hub], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        do {
            try await services.run()
        } catch {
            try? store.close()
            throw error
        }
        try store.close()
    }
}

/// Tells scripts where the hub is; that nobody reads it does not end the hub.
private func reportListening(_ url: String) {
    let output = OutputStream()
    try? output.writeLine("listening on \(url)")
    try? output.flush()
}

/// Host and port as they stand on the command line.
struct ListenAddress: Hashable {
    let host: String
    let port: Int

    init(_ text: String) throws {
        let failure = CommandFailure(
            .usage, "--listen is \"\(text)\"; give host and port, as in 127.0.0.1:7300")
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { throw failure }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw failure
        }
        guard !host.isEmpty else { throw failure }
        self.host = String(host)
        self.port = Int(port)
    }

    /// As it stands in a URL.
    var urlHost: String { host.contains(":") ? "[\(host)]" : host }
}
