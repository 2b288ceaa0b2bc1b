import Foundation
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import NIOCore
import NIOSSL
import Synchronization
import TidemarkSync

/// The hub's certificate and key, as they are in their files.
struct TLSFiles: Hashable, Sendable {
    let certificate: [UInt8]
    let key: [UInt8]

    /// Bytes of a file.
    private static let bytesMax = 1 << 20

    /// - Throws: if one cannot be read.
    init(_ settings: HubSettings.TLS) throws(HubSettingsError) {
        certificate = try Self.contents(
            of: settings.certificateFile, setting: "tls.certificateFile")
        key = try Self.contents(of: settings.keyFile, setting: "tls.keyFile")
    }

    /// TLS 1.2 and later.
    ///
    /// - Throws: if they are no PEM, or do not belong together.
    func configuration() throws -> TLSConfiguration {
        let chain = try NIOSSLCertificate.fromPEMBytes(certificate)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: key, format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        return configuration
    }

    private static func contents(
        of path: String, setting: String
    ) throws(HubSettingsError) -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path), !data.isEmpty,
            data.count <= bytesMax
        else {
            throw HubSettingsError(
                setting, value: path, allowed: "the path of a file in the form PEM")
        }
        return Array(data)
    }
}

/// What takes connections, with the certificate of the day: connections that are open keep the one
/// that they began with, and each new one has the newest.
final class TLSReload: Sendable {
    typealias Channel = HTTP2UpgradeChannel

    private struct State {
        var files: TLSFiles
        var channel: Channel?
        var make: (@Sendable (TLSConfiguration) throws -> Channel)?
    }

    private let settings: HubSettings.TLS
    private let state: Mutex<State>
    private let logger: Logger

    /// - Throws: if the files cannot be used.
    init(_ settings: HubSettings.TLS, logger: Logger) throws(HubSettingsError) {
        let files = try TLSFiles(settings)
        do {
            // So that a wrong key is told before anything listens.
            _ = try NIOSSLContext(configuration: try files.configuration())
        } catch {
            throw HubSettingsError(
                "tls.certificateFile", value: settings.certificateFile,
                allowed: "a certificate, and in tls.keyFile the key that belongs to it (\(error))")
        }
        self.settings = settings
        self.logger = logger
        state = Mutex(State(files: files))
    }

    /// - Parameter make: sets a channel up with a configuration; kept for when the files change.
    /// - Returns: the one with the files as they are.
    func start(
        _ make: @escaping @Sendable (TLSConfiguration) throws -> Channel
    ) throws -> Channel {
        let channel = try make(try state.withLock { $0.files }.configuration())
        state.withLock { state in
            state.make = make
            state.channel = channel
        }
        return channel
    }

    /// The newest; nil before `start`.
    var current: Channel? { state.withLock { $0.channel } }

    /// Looks whether the files have changed, as often as the settings say, until it is cancelled.
    func run(_ environment: any SyncEnvironment) async {
        while !Task.isCancelled {
            do {
                try await environment.sleep(for: .seconds(settings.reloadSeconds))
            } catch {
                return
            }
            look()
        }
    }

    /// Looks once. Files that cannot be used are told in the log, and those before stay: they may
    /// be half written.
    func look() {
        do {
            let files = try TLSFiles(settings)
            let (isNew, make) = state.withLock { ($0.files != files, $0.make) }
            guard isNew, let make else { return }
            let channel = try make(try files.configuration())
            state.withLock { state in
                state.files = files
                state.channel = channel
            }
            logger.notice("the certificate was read anew")
        } catch {
            logger.error(
                "the certificate cannot be read anew; the one before stays in use",
                metadata: ["error": "\(error)"])
        }
    }
}

/// Takes each connection with the newest certificate.
struct ReloadingChannel: ServerChildChannel {
    typealias Value = TLSReload.Channel.Value

    let reload: TLSReload
    /// What it began with.
    let first: TLSReload.Channel

    private var newest: TLSReload.Channel { reload.current ?? first }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        newest.setup(channel: channel, logger: logger)
    }

    func handle(value: Value, logger: Logger) async {
        await newest.handle(value: value, logger: logger)
    }
}
