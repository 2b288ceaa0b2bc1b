import ArgumentParser
import Tidemark

/// A moment of the past on the command line: a sync count, or a date as the command prints them.
struct MomentArgument: ExpressibleByArgument, Hashable {
    let moment: PastMoment

    /// `17`; `2026-11-21T06:30:00Z`, which stands for the last moment of its millisecond;
    /// `2026-11-21T06:30:00.125Z+3`, which is one write's.
    init?(argument: String) {
        if let count = UInt64(argument) {
            moment = .syncCount(SyncCount(rawValue: count))
            return
        }
        let parts = argument.split(separator: "+", maxSplits: 1, omittingEmptySubsequences: false)
        guard let date = parts.first, let milliseconds = Timestamp.milliseconds(Array(date.utf8)),
            milliseconds <= Limits.expiryMax
        else { return nil }
        guard parts.count == 2 else {
            moment = .milliseconds(milliseconds)
            return
        }
        guard let counter = UInt16(parts[1]) else { return nil }
        moment = .time(HybridTime(milliseconds: milliseconds, counter: counter))
    }

    static let valueName = "moment"
}

/// Reading as of a moment of the past.
struct PastOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "As of a past moment: a sync count, or a date like 2026-11-21T06:30:00Z.",
            valueName: MomentArgument.valueName))
    var at: MomentArgument?

    /// The record of a key, live at present or then.
    func record(for key: [UInt8], in dataset: Dataset) throws -> Record? {
        guard let at else { return try dataset.record(for: key) }
        return try dataset.record(for: key, at: at.moment)
    }

    /// Records in the order of their keys.
    func records(
        of dataset: Dataset, in range: KeyRange, order: ScanOrder, includingDeleted: Bool
    ) throws -> RecordCursor {
        guard let at else {
            return try dataset.records(
                in: range, order: order, includingDeleted: includingDeleted)
        }
        return try dataset.records(
            at: at.moment, in: range, order: order, includingDeleted: includingDeleted)
    }
}
