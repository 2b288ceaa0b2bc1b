import ArgumentParser
import Tidemark
import TidemarkSync

/// A command whose output is flushed at its end, also when it fails half-way.
protocol StoreCommand: AsyncParsableCommand {
    mutating func run(_ output: OutputStream) async throws
}

extension StoreCommand {
    mutating func run() async throws {
        let output = OutputStream()
        do {
            try await run(output)
        } catch {
            // What was found before the failure is still worth reading; the failure itself tells
            // more than a second one about the output.
            try? output.flush()
            throw error
        }
        try output.flush()
    }
}

/// The first argument of every command.
struct StoreArgument: ParsableArguments {
    @Argument(help: "The store's directory.", completion: .directory)
    var store: String

    /// Opens the store without changing a byte of it, also beside a process that writes it.
    func openForReading() throws -> Store {
        try openExisting(StoreOptions(isReadOnly: true))
    }

    /// Opens the store if there is one.
    func openExisting(_ options: StoreOptions) throws -> Store {
        var options = options
        options.createsIfMissing = false
        do throws(StoreError) {
            return try Store.open(at: store, options: options)
        } catch {
            guard error.code == .notAStore else { throw error }
            throw CommandFailure(
                .noInput, "no store in \(store); check the path, or make one with 'tidemark put'")
        }
    }

    /// The dataset of a store that is open for reading, or the exit status 1.
    func dataset(_ name: String, in store: Store) throws -> Dataset {
        if let dataset = try store.existingDataset(name) { return dataset }
        throw CommandFailure(
            .negative,
            "no dataset \"\(name)\" in \(self.store); see 'tidemark datasets' for those there are")
    }
}

/// The options of every command that writes records of its own.
struct WritingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "On whose behalf: kept in the version of each record written.", valueName: "name"))
    var author = ""

    @Option(
        help: ArgumentHelp(
            "What a write survives. Default: disk; for import, process "
                + "for each batch and disk for the end.", valueName: "level"))
    var durability: DurabilityLevel?

    /// How a store is opened for writing.
    ///
    /// Segments are not merged in passing: how many superseded versions are worth keeping is for
    /// the store's owner to say, with `compact` or `serve`.
    var options: StoreOptions {
        StoreOptions(
            durability: durability?.level ?? .disk, author: author, compactsAutomatically: false)
    }
}

/// How what comes from another store is merged into this one.
struct MergingOptions: ParsableArguments {
    enum Policy: String, ExpressibleByArgument, CaseIterable {
        case lww
        case local
        case remote
        case leave
    }

    enum DeletedAction: String, ExpressibleByArgument, CaseIterable {
        case stop
        case discard
        case recreate
    }

    @Option(
        help: ArgumentHelp(
            "Which version wins a conflict: the later one, this side's or the other side's; or "
                + "leave it to wait for 'conflicts resolve'."))
    var policy = Policy.lww
    @Option(
        help: ArgumentHelp(
            "What to do here with a dataset that was deleted there.", valueName: "action"))
    var deleted = DeletedAction.stop

    var options: SyncOptions {
        let policy: MergePolicy =
            switch policy {
            case .lww: .lastWriterWins
            case .local: .keepLocal
            case .remote: .keepRemote
            case .leave: .leavePending
            }
        let action: DatasetDeletedAction =
            switch deleted {
            case .stop: .keepAndStop
            case .discard: .discardLocal
            case .recreate: .keepAndRecreate
            }
        return SyncOptions(policy: policy, onDatasetDeleted: action)
    }
}

/// A durability by its name on the command line.
struct DurabilityLevel: ExpressibleByArgument {
    let level: Durability

    init?(argument: String) {
        guard let level = Durability(rawValue: argument) else { return nil }
        self.level = level
    }

    static var allValueStrings: [String] { Durability.allCases.map(\.rawValue) }
}

/// A key on the command line.
struct KeyArgument: ParsableArguments {
    @Argument(help: "The record's key.")
    var key: String

    @Flag(help: "The key is given in base64, for keys that are not text.")
    var base64Key = false

    func bytes() throws -> [UInt8] {
        try keyBytes(key, isBase64: base64Key)
    }
}

/// The bytes of a key as the user spelled it.
func keyBytes(_ text: String, isBase64: Bool) throws -> [UInt8] {
    guard isBase64 else { return Array(text.utf8) }
    guard let bytes = Base64.decode(text) else {
        throw CommandFailure(
            .usage, "\"\(text)\" is not canonical base64; leave out --base64-key if it is text")
    }
    return bytes
}

/// Which keys of a dataset.
struct KeyRangeOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The first key of the range.", valueName: "key"))
    var from: String?
    @Option(help: ArgumentHelp("The first key behind the range.", valueName: "key"))
    var to: String?
    @Option(help: ArgumentHelp("Only keys that begin so.", valueName: "text"))
    var prefix: String?
    @Flag(help: "--from, --to and --prefix are given in base64.") var base64Key = false

    func validate() throws {
        if prefix != nil, from != nil || to != nil {
            throw ValidationError("--prefix and a range exclude each other; leave one out")
        }
    }

    /// Whether none of the options was given.
    var isEmpty: Bool { from == nil && to == nil && prefix == nil }

    func range() throws -> KeyRange {
        func bytes(_ text: String?) throws -> [UInt8]? {
            try text.map { try keyBytes($0, isBase64: base64Key) }
        }
        if let prefix = try bytes(prefix) { return .prefix(prefix) }
        return KeyRange(from: try bytes(from), upTo: try bytes(to))
    }
}

/// The secret that both ends of a sync share.
struct TokenOption: ParsableArguments {
    @Option(
        help: ArgumentHelp("The file that holds the bearer token, on one line.", valueName: "file"),
        completion: .file())
    var tokenFile: String

    private static let tokenBytesMax = 4_096

    /// The token, without the white space around it.
    func token() throws -> String {
        try Self.token(in: tokenFile)
    }

    /// That of a file.
    static func token(in path: String) throws -> String {
        let file = try InputFile(path: path)
        let bytes = try file.readAll(bytesMax: tokenBytesMax)
        // What may stand in a header (RFC 6750: visible ASCII); anything else is another file.
        let token = bytes.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
        guard token.count == 1, let token = token.first,
            token.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw CommandFailure(
                .usage, "\(file.name) must hold one token of visible ASCII characters")
        }
        return String(decoding: token, as: UTF8.self)
    }
}

/// The option of every command that reads.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print one JSON object on each line.")
    var json = false
}

/// How much of the past a compaction keeps.
struct HistoryOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keep so many superseded versions of each key when segments are merged.",
            valueName: "n"))
    var history = 0

    func validate() throws {
        if history < 0 || history > 1_000_000 {
            throw ValidationError("--history is \(history), and must be 0...1,000,000")
        }
    }
}

/// How many lines at most.
struct LimitOption: ParsableArguments {
    @Option(help: ArgumentHelp("Stop after so many.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        if let limit, limit < 0 {
            throw ValidationError("--limit is \(limit), and must be 0 or more")
        }
    }

    func isReached(by count: Int) -> Bool {
        limit.map { count >= $0 } ?? false
    }
}
