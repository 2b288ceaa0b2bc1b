import Logging
import Tidemark

/// An event as an entry of a log: messages are the same for the same kind of event, and all that
/// differs is in the metadata.
struct LogEntry {
    let level: Logger.Level
    let message: Logger.Message
    private(set) var metadata: Logger.Metadata

    private init(_ level: Logger.Level, _ message: Logger.Message, _ metadata: Logger.Metadata) {
        self.level = level
        self.message = message
        self.metadata = metadata
    }

    init(_ event: StoreEvent, path: String) {
        self = Self.entry(event)
        metadata["path"] = "\(path)"
    }

    private static func entry(_ event: StoreEvent) -> LogEntry {
        switch event {
        case .opened(let opening): entry(opening)
        case .logSealed, .mergeStarted, .mergeEnded, .mergeFailed, .expirySwept: background(event)
        case .syncWasSlow(let duration):
            LogEntry(.warning, "a sync was slow", ["seconds": duration.metadata])
        case .writerWaited(let duration):
            LogEntry(.warning, "a writer waited for sealing", ["seconds": duration.metadata])
        case .writerStopped(let error):
            LogEntry(.critical, "the store takes no more writes", error.metadata)
        case .damageFound(let error):
            LogEntry(.error, "damage was found", error.metadata)
        case .eventsLost(let count):
            LogEntry(.warning, "events were lost", ["events": "\(count)"])
        case .closed(let error):
            LogEntry(
                error == nil ? .info : .error, "the store was closed", error?.metadata ?? [:])
        default: operation(event)
        }
    }

    private static func entry(_ opening: StoreEvent.Opening) -> LogEntry {
        LogEntry(
            opening.kind == .recovered ? .notice : .info, "the store was opened",
            [
                "kind": "\(opening.kind.rawValue)", "seconds": opening.duration.metadata,
                "replayedLogs": "\(opening.logsReplayed)",
                "replayedBytes": "\(opening.bytesReplayed)",
                "replayedEntries": "\(opening.entriesReplayed)",
                "leavesOutBlocks": "\(opening.leavesOutBlocks)",
                "segments": "\(opening.segmentCount)", "segmentBytes": "\(opening.segmentBytes)",
            ])
    }

    private static func background(_ event: StoreEvent) -> LogEntry {
        switch event {
        case .logSealed(let sealing):
            LogEntry(
                .debug, "a log was sealed",
                [
                    "log": "\(sealing.log)", "seconds": sealing.duration.metadata,
                    "entries": "\(sealing.entryCount)", "bytesIn": "\(sealing.bytesIn)",
                    "bytesOut": "\(sealing.bytesOut)",
                ])
        case .mergeStarted(let start):
            LogEntry(
                .debug, "a merge began",
                ["runs": "\(start.runCount)", "bytesIn": "\(start.bytesIn)"])
        case .mergeEnded(let merge):
            LogEntry(
                .debug, "a merge ended",
                [
                    "runs": "\(merge.runCount)", "seconds": merge.duration.metadata,
                    "bytesIn": "\(merge.bytesIn)", "bytesOut": "\(merge.bytesOut)",
                    "entriesIn": "\(merge.entriesIn)", "entriesOut": "\(merge.entriesOut)",
                ])
        case .mergeFailed(let error):
            LogEntry(
                error.code == .closed ? .debug : .error, "a merge was given up", error.metadata)
        case .expirySwept(let sweep):
            LogEntry(
                .debug, "expired records were deleted",
                [
                    "datasets": "\(sweep.datasetCount)", "records": "\(sweep.recordCount)",
                    "seconds": sweep.duration.metadata,
                ])
        default: LogEntry(.debug, "something happened", [:])
        }
    }

    /// What somebody asked for has ended.
    private static func operation(_ event: StoreEvent) -> LogEntry {
        switch event {
        case .backupEnded(let duration, let report):
            LogEntry(.info, "a backup was made", report.metadata(duration))
        case .restoreEnded(let duration, let report):
            LogEntry(.notice, "a store was restored", report.metadata(duration))
        case .verificationEnded(let duration, let report):
            LogEntry(
                report.damages.isEmpty ? .info : .error, "a verification ended",
                [
                    "seconds": duration.metadata, "files": "\(report.filesChecked)",
                    "blocks": "\(report.blocksChecked)", "bytes": "\(report.bytesChecked)",
                    "damages": "\(report.damages.count)",
                ])
        case .repairEnded(let duration, let report):
            LogEntry(
                report.isComplete ? .notice : .warning, "a store was repaired",
                [
                    "seconds": duration.metadata, "files": "\(report.filesRead)",
                    "blocks": "\(report.blocksRead)", "datasets": "\(report.datasets.count)",
                    "losses": "\(report.losses.count)",
                ])
        default:
            // A case of a later version of the store.
            LogEntry(.info, "something happened", ["event": "\(event)"])
        }
    }
}

extension StoreError {
    fileprivate var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["code": "\(code)", "error": "\(message)"]
        if let location {
            metadata["file"] = "\(location.path)"
            if let offset = location.offset { metadata["offset"] = "\(offset)" }
        }
        if let systemError { metadata["errno"] = "\(systemError)" }
        return metadata
    }
}

extension BackupReport {
    fileprivate func metadata(_ duration: Duration) -> Logger.Metadata {
        [
            "seconds": duration.metadata, "linked": "\(filesLinked)", "copied": "\(filesCopied)",
            "kept": "\(filesKept)", "removed": "\(filesRemoved)", "bytesCopied": "\(bytesCopied)",
            "bytes": "\(bytesTotal)",
        ]
    }
}

extension Duration {
    /// In seconds, with six digits behind the point.
    fileprivate var metadata: Logger.MetadataValue {
        let (seconds, attoseconds) = components
        let digits = String(abs(attoseconds) / 1_000_000_000_000)
        return "\(seconds).\(String(repeating: "0", count: 6 - digits.count))\(digits)"
    }
}
