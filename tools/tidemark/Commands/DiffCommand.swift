import ArgumentParser
import Tidemark
import TidemarkSync

struct DiffCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Tell what differs between two stores, or between two states of one.",
        discussion: """
            With two stores, their live records as of now. With one, and --since, what has become \
            of it from then until now, or --until: a sync count, a date, a version vector as \
            'history' prints it, or peer:ID for what that replica was known to have seen when it \
            was last met.

            + is a record that only the second state has, - one that only the first has, ~ one \
            that both have in two versions. IS says how the second version stands to the first: \
            newer, older, or concurrent, which is a conflict; "?" follows where history was \
            dropped that could say otherwise.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(
        help: ArgumentHelp("The directory of another store.", valueName: "other-store"),
        completion: .directory)
    var other: String?
    @OptionGroup var selection: DatasetSelection
    @Option(help: ArgumentHelp("The first state.", valueName: StateArgument.valueName))
    var since: StateArgument?
    @Option(
        help: ArgumentHelp("The second state. Default: now.", valueName: StateArgument.valueName))
    var until: StateArgument?
    @OptionGroup var keys: KeyRangeOptions
    @OptionGroup var limit: LimitOption
    @Flag(help: "Exit with 1 if anything differs.") var exitCode = false
    @OptionGroup var format: OutputOptions

    func validate() throws {
        guard (other != nil) != (since != nil) else {
            throw ValidationError("name another store, or give --since for a state of this one")
        }
        if until != nil, since == nil {
            throw ValidationError("--until goes with --since")
        }
        let isOfOne = [since, until].contains { $0?.isOfOneDataset ?? false }
        if isOfOne, !selection.isOne {
            throw ValidationError(
                "sync counts, version vectors and peers are those of one dataset; name it with "
                    + "--dataset")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let range = try keys.range()
        let store = try target.openForReading()
        let listing = DifferenceListing(
            output, isJSON: format.json,
            titles: other == nil ? ("BEFORE", "AFTER") : ("FIRST", "SECOND"),
            showsDataset: !selection.isOne)
        if let other {
            try await compare(store, with: other, range, listing)
        } else {
            try compareStates(of: store, range, listing)
        }
        try listing.finish()
        try store.close()
        if exitCode, listing.count > 0 {
            throw CommandFailure(
                .negative, "\(Quantities.counted(listing.count, "record")) differ")
        }
    }

    // MARK: - Two stores

    private func compare(
        _ first: Store, with path: String, _ range: KeyRange, _ listing: DifferenceListing
    ) async throws {
        let second = try StoreArgument(path: path).openForReading()
        let progress = ComparisonProgress(of: [first, second])
        defer { progress.finish() }
        for name in try names(in: first, second) {
            let left = try first.existingDataset(name)
            let right = try second.existingDataset(name)
            progress.label = "comparing \(name)"
            let walk = try DifferenceWalk(
                name, left?.records(in: range), right?.records(in: range), tell: progress.add)
            while !limit.isReached(by: listing.count), let difference = try walk.next() {
                progress.finish()
                try listing.add(difference)
            }
        }
        try second.close()
    }

    /// Those that were named, if either store has each; else all of both.
    private func names(in first: Store, _ second: Store) throws -> [String] {
        let names = try selection.names(in: first, or: second)
        for name in selection.dataset {
            if try first.existingDataset(name) != nil { continue }
            if try second.existingDataset(name) != nil { continue }
            throw DatasetSelection.missing(name)
        }
        return names
    }

    // MARK: - Two states of one store

    private func compareStates(
        of store: Store, _ range: KeyRange, _ listing: DifferenceListing
    ) throws {
        let progress = ComparisonProgress(of: [store, store])
        defer { progress.finish() }
        for name in try selection.names(in: store) {
            let dataset = try target.dataset(name, in: store)
            progress.label = "comparing \(name)"
            if let (before, after) = try vectors(of: dataset) {
                let changes = try dataset.changes(from: before, to: after, in: range)
                while !limit.isReached(by: listing.count), let change = try changes.next() {
                    let difference = RecordDifference(
                        dataset: name, key: change.key, before: change.before.record,
                        after: change.after.record, isCertain: change.isCertain)
                    if let difference { try listing.add(difference) }
                }
                listing.uncertainCount += changes.uncertainCount
            } else {
                let walk = try DifferenceWalk(
                    name, try records(of: dataset, at: since, range),
                    try records(of: dataset, at: until, range), tell: progress.add)
                while !limit.isReached(by: listing.count), let difference = try walk.next() {
                    progress.finish()
                    try listing.add(difference)
                }
            }
        }
    }

    /// The states as version vectors; nil if both are moments.
    private func vectors(of dataset: Dataset) throws -> (VersionVector, VersionVector)? {
        let before = try since?.vector(of: dataset)
        let after = try until?.vector(of: dataset)
        switch (before, after) {
        case (nil, nil):
            return nil
        case (let before?, let after?):
            return (before, after)
        case (let before?, nil) where until == nil:
            return (before, try dataset.vector)
        default:
            throw CommandFailure(
                .usage,
                "a moment here and what somebody else has seen cannot be compared; give two of "
                    + "one kind")
        }
    }

    private func records(
        of dataset: Dataset, at state: StateArgument?, _ range: KeyRange
    ) throws -> RecordCursor {
        guard case .moment(let moment) = state else { return try dataset.records(in: range) }
        return try dataset.records(at: moment, in: range)
    }
}
