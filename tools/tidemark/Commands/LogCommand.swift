import ArgumentParser
import Glibc
import Tidemark

struct LogCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Show every operation still in the log.",
        discussion: """
            Sealed segments first, each dataset by dataset in the order of change; then the \
            logs, as they were written. SEGMENT and OFFSET name the block that holds the \
            operation; COUNT is the dataset's sync count, DOT the write's name, SIZE the bytes of \
            the value. "put ttl" is a put of a record that expires, "expired" the deletion that \
            took its place; --json tells when, as "expiresAt".

            --follow goes on with what is written from then on, until it is interrupted. --hex \
            shows the bytes of one file instead, each with the field that it belongs to.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var filter: LogFilter
    @Flag(help: "Go on with what is written from now on.") var follow = false
    @Flag(help: "The bytes of --segment, each with its field.") var hex = false
    @Option(
        help: ArgumentHelp("With --hex: begin at the block there.", valueName: "offset"))
    var offset: UInt64 = 0
    @Flag(help: "With --hex: all bytes of long values, too.") var full = false
    @OptionGroup var limit: LimitOption
    @OptionGroup var format: OutputOptions

    /// Operations between two looks at the clock.
    private static let progressStep = 4_096

    func validate() throws {
        if hex, filter.segment == nil {
            throw ValidationError("--hex needs --segment, which says of which file")
        }
        if follow, filter.segment != nil {
            throw ValidationError("--follow and --segment exclude each other; leave one out")
        }
        if hex, follow { throw ValidationError("--hex and --follow exclude each other") }
        if !hex, offset != 0 || full {
            throw ValidationError("--offset and --full are for --hex alone")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        if hex { return try writeBytes(output) }
        let wanted = try filter.keyBytes()
        let store = try target.openForReading()
        if let dataset = filter.dataset, !follow {
            _ = try target.dataset(dataset, in: store)
        }
        let file = try filter.segment.map { try SegmentFile.name($0, in: target.store) }
        let operations = try store.operations(in: filter.dataset) { file == nil || $0 == file }
        let listing = LogListing(output, showsDataset: filter.dataset == nil)
        var tail = LogTail(files: try store.segmentFiles())
        // Where many are passed over for each that is shown; not between the lines of a table.
        let bar = ProgressBar("searching", isTerminal: !output.isTerminal && isatty(2) == 1)
        defer { bar.finish() }
        var passedCount = 0
        var count = 0
        while !limit.isReached(by: count), let operation = try operations.next() {
            tail.note(operation)
            passedCount += 1
            if passedCount % Self.progressStep == 0 {
                bar.update(bytes: operations.bytesBegun, of: operations.bytesTotal)
            }
            guard filter.includes(operation, key: wanted) else { continue }
            count += 1
            try write(operation, listing, output)
        }
        try store.close()
        bar.finish()
        try listing.settle()
        while follow, !limit.isReached(by: count) {
            try output.flush()
            try await Task.sleep(for: LogTail.pause)
            for operation in try tail.next(target, filter) where !limit.isReached(by: count) {
                guard filter.includes(operation, key: wanted) else { continue }
                count += 1
                try write(operation, listing, output)
            }
            try listing.settle()
        }
    }

    private func write(
        _ operation: LogOperation, _ listing: LogListing, _ output: OutputStream
    ) throws {
        if format.json {
            try output.write(JSONLine(operation).line)
        } else {
            try listing.add(operation)
        }
    }

    private func writeBytes(_ output: OutputStream) throws {
        let file = try SegmentFile.name(filter.segment ?? "", in: target.store)
        let parts = try dissection(of: file)
        if offset > 0 { try parts.skip(to: offset) }
        let dump = HexDump(output, isFull: full)
        var count = 0
        while !limit.isReached(by: count), let part = try parts.next() {
            count += 1
            if format.json {
                try dump.writeJSON(part)
            } else {
                try dump.write(part)
            }
        }
    }

    /// With the names of datasets, unless damage keeps the store from being opened.
    private func dissection(of file: String) throws -> FileDissection {
        do {
            return try target.openForReading().dissection(ofFile: file)
        } catch let error as StoreError where error.code == .corruption {
            return try Store.dissection(ofFile: file, in: target.store)
        }
    }
}

/// What of a log was shown, so that what comes after it can be told from it.
///
/// A reader sees the log as it was when it opened the store, so it opens it again and again. Logs
/// are read anew each time, sealed segments when they are new; what is no longer in a log by then
/// is told by its sync count.
struct LogTail {
    static let pause = Duration.milliseconds(500)

    private var files: Set<String>
    private var counts: [String: SyncCount] = [:]
    /// Of the last block in a log that was read before and in this turn, for what is no write.
    private var position = Place()
    private var latest = Place()

    private struct Place {
        var segment = ""
        var offset: UInt64 = 0

        /// Longer names have greater numbers.
        static func < (left: Place, right: Place) -> Bool {
            (left.segment.utf8.count, left.segment, left.offset)
                < (right.segment.utf8.count, right.segment, right.offset)
        }
    }

    init(files: [String]) {
        self.files = Set(files)
    }

    /// Takes note of an operation; says whether it is new.
    @discardableResult
    mutating func note(_ operation: LogOperation) -> Bool {
        if operation.syncCount != .zero {
            guard operation.syncCount > counts[operation.dataset] ?? .zero else { return false }
            counts[operation.dataset] = operation.syncCount
            return true
        }
        let place = Place(segment: operation.segment, offset: operation.offset)
        if latest < place { latest = place }
        return position < place
    }

    /// What has come since, in its order.
    mutating func next(
        _ target: StoreArgument, _ filter: LogFilter
    ) throws -> [LogOperation] {
        let store = try target.openForReading()
        let known = files
        position = latest
        let cursor = try store.operations(in: filter.dataset) { file in
            file.hasSuffix(".log") || !known.contains(file)
        }
        files = Set(try store.segmentFiles())
        var new: [LogOperation] = []
        while let operation = try cursor.next() {
            if note(operation) { new.append(operation) }
        }
        try store.close()
        return new
    }
}
