import ArgumentParser
import Hummingbird
import Logging

/// A route of Hummingbird that returns a constant: the floor that the hub's rates are told by.
struct BareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bare", abstract: "Serve a constant; the benchmark of the hub starts this.",
        shouldDisplay: false)

    @Option var port: Int

    func run() async throws {
        var logger = Logger(label: "bare")
        logger.logLevel = .critical
        let router = Router()
        router.get("/health") { _, _ -> String in #"{"status":"ok"}"# }
        let application = Application(
            router: router,
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)),
            logger: logger)
        try await application.runService()
    }
}
