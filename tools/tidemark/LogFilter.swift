import ArgumentParser
import Tidemark

/// A date on the command line: `2026-11-21`, which is its beginning, or `2026-11-21T06:30:00Z`.
struct DateArgument: ExpressibleByArgument {
    /// Since 1970.
    let milliseconds: UInt64

    init?(argument: String) {
        let text = argument.contains("T") ? argument : argument + "T00:00:00Z"
        guard let milliseconds = Timestamp.milliseconds(Array(text.utf8)) else { return nil }
        self.milliseconds = milliseconds
    }
}

/// A kind of operation by the name that the table shows.
struct OperationName: ExpressibleByArgument, Hashable {
    let text: String

    init?(argument: String) {
        guard Self.allValueStrings.contains(argument) else { return nil }
        text = argument
    }

    static var allValueStrings: [String] {
        LogOperation.Kind.allCases.map(\.shortName) + ["expired"]
    }
}

/// Which operations of the log.
struct LogFilter: ParsableArguments {
    @Option(help: ArgumentHelp("Only operations of this dataset.", valueName: "name"))
    var dataset: String?
    @Option(help: ArgumentHelp("Only operations on this key.", valueName: "key"))
    var key: String?
    @Flag(help: "--key is given in base64.") var base64Key = false
    @Option(help: ArgumentHelp("Only writes dated then or later.", valueName: "date"))
    var since: DateArgument?
    @Option(help: ArgumentHelp("Only writes dated before.", valueName: "date"))
    var until: DateArgument?
    @Option(help: ArgumentHelp("Only writes on this one's behalf.", valueName: "name"))
    var author: String?
    @Option(
        name: .customLong("op"),
        help: ArgumentHelp("Only operations of this kind; may be repeated.", valueName: "op"))
    var kinds: [OperationName] = []
    @Option(
        help: ArgumentHelp(
            "Only what lies in this file: its number or name.", valueName: "segment"))
    var segment: String?

    func keyBytes() throws -> [UInt8]? {
        try key.map { try tidemark.keyBytes($0, isBase64: base64Key) }
    }

    /// - Parameter key: as ``keyBytes()`` gives it.
    func includes(_ operation: LogOperation, key: [UInt8]?) -> Bool {
        if let key, operation.key != key { return false }
        if !kinds.isEmpty, !kinds.contains(where: { $0.text == operation.kindName }) {
            return false
        }
        guard since != nil || until != nil || author != nil else { return true }
        // What is no write has neither date nor author.
        guard let version = operation.version else { return false }
        let time = version.time.milliseconds
        return time >= since?.milliseconds ?? 0 && time < until?.milliseconds ?? .max
            && author.map { $0 == version.author } ?? true
    }
}

extension LogOperation {
    /// As `--op` calls it.
    var kindName: String {
        kind == .delete && expiresAt != nil ? "expired" : kind.shortName
    }

    /// At most seven letters, for a narrow column.
    var shortName: String {
        kind == .put && expiresAt != nil ? "put ttl" : kindName
    }
}

extension LogOperation.Kind {
    /// At most seven letters.
    var shortName: String {
        switch self {
        case .put: "put"
        case .delete: "delete"
        case .datasetCreated: "create"
        case .datasetDeleted: "drop"
        case .datasetAdopted: "adopt"
        case .peerCheckpoint: "peer"
        case .vectorJoined: "join"
        case .replicaRenamed: "rename"
        case .replicaDisowned: "disown"
        case .deletionsForgotten: "forget"
        case .peerRetired: "retire"
        }
    }
}

/// A file of a store by its number, or by its name.
enum SegmentFile {
    /// The name of the file: a log or a sealed segment where a number is all that was given, and
    /// the value file with that number only where there is neither.
    static func name(_ text: String, in directory: String) throws -> String {
        let names = try SystemStorage().listDirectory(directory)
        let endings = [".seg", ".log", ".val"]
        if names.contains(text), endings.contains(where: text.hasSuffix) { return text }
        if let number = UInt64(text) {
            let digits = String(number)
            let stem = String(repeating: "0", count: max(0, 6 - digits.count)) + digits
            for ending in endings where names.contains(stem + ending) { return stem + ending }
        }
        throw CommandFailure(
            .negative,
            "no log, segment or value file \(text) in \(directory); "
                + "see 'tidemark inspect' for those there are")
    }
}
