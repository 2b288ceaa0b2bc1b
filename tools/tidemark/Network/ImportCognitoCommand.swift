#if Networking
import ArgumentParser
import Glibc
import Synchronization
import Tidemark
import TidemarkHub

struct ImportCognitoCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "cognito",
        abstract: "Pull all datasets of identity pools into the store of a hub.",
        discussion: """
            Asks a service with the APIs of Cognito Identity and Cognito Sync for all identities \\
            of the pools, their datasets and records, and stores them so that 'tidemark serve' \\
            answers the same devices with the same ids, records, removals and sync counts. \\
            Repeated, it brings over what has changed since. Datasets that were written to here \\
            are left alone, and named.

            The secret of the access key is taken from --secret-key-file, else from \\
            AWS_SECRET_ACCESS_KEY; the token of temporary credentials from AWS_SESSION_TOKEN.

            The file of --logins says who signs in as which identity, which the service does not \\
            tell: a line of JSON for each login, as in {"identityId": "us-east-1:...", \\
            "provider": "accounts.example.com", "subject": "1234"}. Identities that have logins \\
            and are not named there are brought over, but nobody gets credentials of them until \\
            the import is repeated with their logins.
            """)

    @OptionGroup var target: StoreArgument
    @Option(
        help: ArgumentHelp(
            "The address of Cognito Sync, as in https://cognito-sync.us-east-1.amazonaws.com",
            valueName: "url"))
    var endpoint: String
    @Option(
        help: ArgumentHelp(
            "The address of Cognito Identity. Default: the one that belongs to --endpoint.",
            valueName: "url"))
    var identityEndpoint: String?
    @Option(help: ArgumentHelp("An identity pool's id; may be given several times."))
    var pool: [String]
    @Option(help: "The region that requests are signed for.") var region = "us-east-1"
    @Option(
        help: ArgumentHelp(
            "The id of the access key. Default: AWS_ACCESS_KEY_ID.", valueName: "id"))
    var accessKey: String?
    @Option(
        help: ArgumentHelp("The file that holds its secret, on one line.", valueName: "file"),
        completion: .file())
    var secretKeyFile: String?
    @Option(
        help: ArgumentHelp(
            "A file of ids, one a line: only these identities, of the one --pool.",
            valueName: "file"), completion: .file())
    var identities: String?
    @Option(
        help: ArgumentHelp("A file of logins, as above.", valueName: "file"), completion: .file())
    var logins: String?
    @Option(
        help: ArgumentHelp(
            "What the app's own service is called among the providers: its users are asked for.",
            valueName: "name"))
    var developerProvider: String?
    @OptionGroup var writing: WritingOptions
    @OptionGroup var format: OutputOptions

    private static let fileBytesMax = 256 << 20
    private static let secretBytesMax = 4_096

    mutating func run(_ output: OutputStream) async throws {
        // All that can be wrong with the command line comes first, so that no store is created.
        let work = try HubImport(
            source: try source(), pools: pool, identities: try identityIDs(),
            logins: try loginsOfFile(), developerProvider: developerProvider)
        var options = writing.options
        options.durability = writing.durability?.level ?? .process
        let store = try Store.open(at: target.store, options: options)
        let bar = Mutex(ProgressBar("importing"))
        let outcome: Result<HubImport.Report, any Error>
        do {
            let report = try await work.run(into: store) { report in
                bar.withLock { bar in
                    bar.label = "\(Quantities.grouped(report.identities)) identities"
                    bar.update(bytes: 0, of: nil, items: report.records)
                }
            }
            try store.sync()
            outcome = .success(report)
        } catch {
            outcome = .failure(error)
        }
        bar.withLock { $0.finish() }
        try store.close()
        try write(try outcome.get(), output)
    }

    private func write(_ report: HubImport.Report, _ output: OutputStream) throws {
        if format.json {
            try output.write(JSONLine(report).line)
        } else {
            try output.writeLine(
                "\(Quantities.counted(report.records, "record")) and "
                    + "\(Quantities.counted(report.removals, "removal")) of "
                    + "\(Quantities.grouped(report.identities)) identities imported")
            if report.closedIdentities > 0 {
                try output.writeLine(
                    "\(Quantities.grouped(report.closedIdentities)) of them wait for --logins")
            }
        }
        guard report.problemCount > 0 else { return }
        for problem in report.problems {
            reportLine(TerminalText.oneLine("tidemark: \(problem.place): \(problem.reason)"))
        }
        throw CommandFailure(
            .badData,
            "\(Quantities.counted(report.problemCount, "problem")): what is named was left out, "
                + "and the rest is stored")
    }

    // MARK: - What is read

    private func source() throws -> HubImport.Source {
        guard let id = accessKey ?? Self.environment("AWS_ACCESS_KEY_ID") else {
            throw CommandFailure(
                .usage, "no access key; give --access-key, or set AWS_ACCESS_KEY_ID")
        }
        let secret: String
        if let secretKeyFile {
            secret = try Self.line(of: InputFile(path: secretKeyFile))
        } else if let text = Self.environment("AWS_SECRET_ACCESS_KEY") {
            secret = text
        } else {
            throw CommandFailure(
                .usage, "no secret; give --secret-key-file, or set AWS_SECRET_ACCESS_KEY")
        }
        return HubImport.Source(
            endpoint: endpoint, identityEndpoint: identityEndpoint, region: region,
            accessKeyID: id, secretAccessKey: HubSecret(secret),
            sessionToken: accessKey == nil
                ? Self.environment("AWS_SESSION_TOKEN").map { HubSecret($0) } : nil)
    }

    private static func environment(_ name: String) -> String? {
        // The environment is not changed while the command runs.
        guard let text = unsafe getenv(name) else { return nil }
        let value = unsafe String(cString: text)
        return value.isEmpty ? nil : value
    }

    private static func line(of file: InputFile) throws -> String {
        let bytes = try file.readAll(bytesMax: secretBytesMax)
        let words = bytes.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
        guard words.count == 1, words[0].allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure(
                .usage, "\(file.name) must hold one secret of visible ASCII characters")
        }
        return String(decoding: words[0], as: UTF8.self)
    }

    private func identityIDs() throws -> [String]? {
        guard let identities else { return nil }
        let bytes = try InputFile(path: identities).readAll(bytesMax: Self.fileBytesMax)
        return bytes.split { $0 == 0x0A || $0 == 0x0D }.map { String(decoding: $0, as: UTF8.self) }
    }

    private func loginsOfFile() throws -> [HubImport.Login] {
        guard let logins else { return [] }
        let file = try InputFile(path: logins)
        let lines = try file.readAll(bytesMax: Self.fileBytesMax).split(
            separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        var found: [HubImport.Login] = []
        for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 <= 0x20 }) {
            do throws(JSONProblem) {
                found.append(try Self.login(Array(line)))
            } catch {
                throw CommandFailure(
                    .badData, "line \(index + 1) of \(file.name): \(error.what); correct the line")
            }
        }
        return found
    }

    private static func login(_ line: [UInt8]) throws(JSONProblem) -> HubImport.Login {
        var members: [(name: Range<Int>, value: Range<Int>)] = []
        var scanner = JSONScanner()
        try scanner.scanObject(line.span) { name, value throws(JSONProblem) in
            members.append((name, value))
        }
        var texts: [String: String] = [:]
        for member in members where line[member.value.lowerBound] == UInt8(ascii: "\"") {
            let name = try JSONContent.string(line.span, member.name)
            let value = try JSONContent.string(line.span, member.value)
            texts[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
        }
        guard let id = texts["identityId"], let provider = texts["provider"],
            let subject = texts["subject"]
        else {
            throw JSONProblem(
                what: "the texts identityId, provider and subject are expected", position: 0)
        }
        return HubImport.Login(identityID: id, provider: provider, subject: subject)
    }
}

extension HubImportError: ReportableError {
    var exitStatus: CommandStatus {
        switch code {
        case .invalidArgument: .usage
        case .unreachable: .unavailable
        case .refused: .refused
        case .badAnswer: .protocolBroken
        }
    }
}

extension JSONLine {
    init(_ report: HubImport.Report) {
        self.init()
        add("identities", report.identities)
        add("closedIdentities", report.closedIdentities)
        add("datasets", report.datasets)
        add("records", report.records)
        add("removals", report.removals)
        add("problems", report.problemCount)
    }
}
#endif
