#if Networking
import ArgumentParser
import Logging
import ServiceLifecycle
import Synchronization
import Tidemark
import TidemarkHub
import TidemarkObservability
import UnixSignals

struct ServeCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a store as a hub: to apps of Cognito Sync, and to replicas.",
        discussion: """
            Prints one line, 'listening on http://HOST:PORT', once it accepts connections, and \
            logs to standard error. SIGTERM and SIGINT end it in order: requests under way are \
            answered, and the store is closed. The store is created if missing.

            Identity pools, access keys, TLS and all limits are settings: of a file of JSON that \
            --config names, or of the environment, where a setting listen.port is called \
            TIDEMARK_LISTEN_PORT. Flags go before the environment, and that before the file. \
            Secrets stand in files of their own or in the environment.
            """)

    @OptionGroup var target: StoreArgument
    @Option(
        help: ArgumentHelp(
            "Where to listen; port 0 takes a free one. An IPv6 address stands in brackets.",
            valueName: "host:port"))
    var listen: String?
    @Option(
        help: ArgumentHelp("The file with the settings, as JSON.", valueName: "file"),
        completion: .file())
    var config: String?
    @Option(
        help: ArgumentHelp(
            "The file that holds the hub's own token, on one line: replicas with it see all "
                + "datasets but the hub's own.", valueName: "file"),
        completion: .file())
    var tokenFile: String?
    @Option(
        help: ArgumentHelp(
            "For how long deletions are remembered, for devices that were away.",
            valueName: "days"))
    var tombstoneDays = 365
    @Option(
        help: ArgumentHelp(
            "How far the clock of a replica may be ahead of the hub's. What is dated later is held "
                + "until its date has come.", valueName: "seconds"))
    var clockAheadSeconds = 10
    @OptionGroup var writing: WritingOptions
    @OptionGroup var retention: HistoryOption

    private static let tombstoneDaysMax = 36_500
    private static let clockAheadSecondsMax = 86_400

    func validate() throws {
        if tombstoneDays < 1 || tombstoneDays > Self.tombstoneDaysMax {
            throw ValidationError(
                "--tombstone-days is \(tombstoneDays), and must be 1...\(Self.tombstoneDaysMax)")
        }
        if clockAheadSeconds < 0 || clockAheadSeconds > Self.clockAheadSecondsMax {
            throw ValidationError(
                "--clock-ahead-seconds is \(clockAheadSeconds), and must be "
                    + "0...\(Self.clockAheadSecondsMax)")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let settings = try settings()
        DescriptorLimit.raise()
        let registry = PrometheusRegistry.bootstrapped()
        var logger = Logger(label: "tidemark") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .info
        let store = ServedStore(
            path: target.store, options: storeOptions,
            observer: StoreTelemetry(name: target.store, logger: logger))
        let scheme = settings.tls == nil ? "http" : "https"
        let host = ListenAddress.urlHost(of: settings.host)
        let hub = Hub(
            store: try store.open(), settings: settings,
            reopen: { () throws(StoreError) in try store.open() }, metrics: registry,
            logger: logger,
            onListening: { port in
                reportListening("\(scheme)://\(host):\(port)")
            })
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

    private func settings() throws -> HubSettings {
        var flags: [String: SettingValue] = [:]
        if let listen {
            let address = try ListenAddress(listen)
            flags["listen.host"] = .text(address.host)
            flags["listen.port"] = .number(address.port)
        }
        var settings = try HubSettings.read(file: config, flags: flags)
        if let tokenFile {
            settings.adminToken = HubSecret(try TokenOption.token(in: tokenFile))
        }
        guard
            settings.adminToken != nil || !settings.pools.isEmpty || !settings.bearers.isEmpty
        else {
            throw CommandFailure(
                .usage,
                "nobody could use this hub; give --token-file, or --config with pools or bearers")
        }
        return settings
    }

    private var storeOptions: StoreOptions {
        var options = Self.served(
            writing.options, tombstoneDays: tombstoneDays, clockAheadSeconds: clockAheadSeconds)
        options.historyVersions = retention.history
        return options
    }

    /// What a hub's store has besides.
    static func served(
        _ options: StoreOptions, tombstoneDays: Int, clockAheadSeconds: Int
    ) -> StoreOptions {
        var options = options
        options.compactsAutomatically = true
        options.tombstoneAge = .seconds(tombstoneDays * 86_400)
        // Less than among replicas of one owner: here any device of an identity can date what it
        // writes, and move the clock by which all others are dated.
        options.clockAheadMax = .seconds(clockAheadSeconds)
        return options
    }
}

/// The store that is served: another object once it was opened anew after a failure of the disk.
private final class ServedStore: Sendable {
    private let path: String
    private let options: StoreOptions
    private let observer: any StoreObserver
    private let latest = Mutex<Store?>(nil)

    init(path: String, options: StoreOptions, observer: any StoreObserver) {
        self.path = path
        self.options = options
        self.observer = observer
    }

    func open() throws(StoreError) -> Store {
        let store = try Store.open(at: path, options: options, observer: observer)
        latest.withLock { $0 = store }
        return store
    }

    func close() throws {
        try latest.withLock { $0 }?.close()
    }
}

extension HubSettingsError: ReportableError {
    var exitStatus: CommandStatus { .usage }
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
    var urlHost: String { Self.urlHost(of: host) }

    static func urlHost(of host: String) -> String {
        host.contains(":") ? "[\(host)]" : host
    }
}
#endif
