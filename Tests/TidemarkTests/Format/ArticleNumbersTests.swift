import TestSupport
import Testing

@testable import Tidemark

/// The numbers that the articles give are those of the code: each is written here as the code has
/// it, with the words around it, and must stand so in its article.
@Suite("Numbers in the articles")
struct ArticleNumbersTests {
    /// What an article says, with numbers taken from the code.
    struct Claim: Sendable, CustomTestStringConvertible {
        let article: String
        let text: String

        init(_ article: String, _ text: String) {
            self.article = article
            self.text = text
        }

        var testDescription: String { "\(article): \(text)" }
    }

    @Test("What an article says is so", arguments: Claim.all)
    func claims(claim: Claim) throws {
        #expect(try Self.article(claim.article).contains(claim.text))
    }

    @Test("Every public limit has its row in the article on limits")
    func publicLimits() throws {
        let limits = try Self.source("Limits.swift").split(separator: "\n")
            .filter { $0.contains("public static let ") }
            .compactMap { $0.split(separator: " ").dropFirst(3).first }
            .map { $0.filter { $0.isLetter } }
        #expect(limits.count > 10)
        let article = try Self.article("Limits")
        for limit in limits {
            #expect(article.contains("| ``Limits/\(limit)`` |"), "no row for \(limit)")
        }
    }

    @Test("Kinds of files, blocks and items are those of the article")
    func kinds() throws {
        let article = try Self.article("FileFormat")
        let blocks = "Kinds: \(list(of: article, after: "Kinds: "))"
        // Each kind that the code knows, and no other.
        let known = (UInt8.min...UInt8.max).filter { BlockHeader.Kind(rawValue: $0) != nil }
        #expect(numbers(in: blocks) == known.map { Int($0) })
        let files = (0...255).filter { FileHeader.Kind(rawValue: $0) != nil }
        #expect(files.map { Int($0) } == Array(1...7))
        for code in UInt8.min...UInt8.max {
            let row = "| \(code) | \(LogItem.Code(rawValue: code).map { "\($0)" } ?? "end") |"
            let isItem = code == 0 || LogItem.Code(rawValue: code) != nil
            #expect(!isItem || article.contains(row), "no row \(row)")
        }
    }

    @Test("The store's own datasets have the numbers of the article")
    func ownDatasets() throws {
        let article = try Self.article("FileFormat")
        for which in SystemDataset.allCases {
            let digits = String(which.number, radix: 16, uppercase: true)
            // The first row has the whole number, and the others the end of it.
            let isFirst = which.number == Limits.systemDatasetNumbers.lowerBound
            let number = isFirst ? "0x\(digits)" : "…\(digits.suffix(3))"
            #expect(article.contains("| \(number) | `~\(which.rawValue)` |"), "\(which)")
        }
    }

    /// Up to the full stop.
    private func list(of article: String, after head: String) -> Substring {
        guard let start = article.range(after: head) else { return "" }
        return article[start...].prefix { $0 != "." }
    }

    private func numbers(in text: String) -> [Int] {
        text.split { !$0.isNumber }.compactMap { Int($0) }
    }

    // MARK: - Files

    private static let root: String = {
        let path = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return path.dropLast(4).joined(separator: "/") + "/Sources/Tidemark"
    }()

    private static func source(_ name: String) throws -> String {
        String(decoding: try Files.read("\(root)/\(name)"), as: UTF8.self)
    }

    /// In one line, since a sentence may be broken anywhere.
    private static func article(_ name: String) throws -> String {
        try source("Tidemark.docc/\(name).md").split { $0.isWhitespace }.joined(separator: " ")
    }
}

extension String {
    /// Behind the first place where a text stands.
    fileprivate func range(after text: String) -> Index? {
        guard let found = firstRange(of: text) else { return nil }
        return found.upperBound
    }
}

/// Numbers as the articles write them.
private func grouped(_ number: some BinaryInteger) -> String {
    let digits = Array(String(number))
    return digits.indices.map { index in
        (index > 0 && (digits.count - index) % 3 == 0 ? "," : "") + String(digits[index])
    }.joined()
}

/// In the largest unit in which they are whole.
private func bytes(_ number: some BinaryInteger) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
    for (shift, unit) in units where number > 0 && number & (1 << shift - 1) == 0 {
        return "\(number >> shift) \(unit)"
    }
    return "\(grouped(number)) bytes"
}

private func years(_ duration: Duration) -> String {
    // Of 365.25 days.
    "\(duration.components.seconds / 31_557_600) years"
}

/// Of numbers below a power of two.
private func bits(_ bound: some FixedWidthInteger) -> Int {
    bound.trailingZeroBitCount
}

extension ArticleNumbersTests.Claim {
    static let all: [Self] = [
        limits, limitsOfFiles, limitsOfMemory, tuning, durability, compaction, format, segments,
    ].flatMap(\.self)

    private static func row(_ name: String, _ text: String) -> Self {
        Self("Limits", "| ``Limits/\(name)`` | \(text)")
    }

    private static let limits: [Self] = [
        row("keyBytesMax", "1 to \(bytes(Limits.keyBytesMax)) |"),
        row("valueBytesMax", "0 to \(bytes(Limits.valueBytesMax)) |"),
        row("batchBytesMax", "\(bytes(Limits.batchBytesMax)) |"),
        row("authorBytesMax", "0 to \(bytes(Limits.authorBytesMax)) of UTF-8 |"),
        row("expiryMax", "2^\(bits(Limits.expiryMax + 1)) − 1 ms since 1970"),
        row("datasetNameBytesMax", "1 to \(bytes(Limits.datasetNameBytesMax)) of"),
        row(
            "segmentBytes",
            "\(bytes(Limits.segmentBytes.lowerBound)) to "
                + "\(bytes(Limits.segmentBytes.upperBound)) |"),
        row(
            "largeValueBytes",
            "\(bytes(Limits.largeValueBytes.lowerBound)) to "
                + "\(bytes(Limits.largeValueBytes.upperBound - 1)) and one |"),
        row(
            "memoryLimit",
            "\(bytes(Limits.memoryLimit.lowerBound)) to \(bytes(Limits.memoryLimit.upperBound)) |"),
        row(
            "blockCacheBytes",
            "0 to \(bytes(Limits.blockCacheBytes.upperBound)), and "
                + "\(bytes(Limits.workingBytesMin)) less than"),
        row("waitingEventsMax", "\(grouped(Limits.waitingEventsMax)) events"),
        row(
            "verificationThreads",
            "\(Limits.verificationThreads.lowerBound) to "
                + "\(Limits.verificationThreads.upperBound) |"),
        row("historyVersions", "0 to \(grouped(Limits.historyVersions.upperBound)) |"),
        row("historyAge", "0 to \(years(Limits.historyAge.upperBound)) |"),
        row("tombstoneAge", "1 minute to \(years(Limits.tombstoneAge.upperBound)) |"),
        row("clockAheadMax", "0 to \(years(Limits.clockAheadMax.upperBound)) |"),
    ]

    private static let limitsOfFiles: [Self] = [
        "| numbers of datasets | \(grouped(Limits.systemDatasetNumbers.lowerBound - 1)) in",
        "may pass over \(Limits.datasetNumbersPassedMax / 1_000_000) million;",
        "| entries of a sealed segment | \(grouped(Limits.segmentEntriesMax)),",
        "making a segment takes \(SegmentWriter.bytesEachEntry) bytes of memory for each",
        "before compression | \(bytes(Limits.segmentRawBytesMax)), and at most two blocks more",
        "the place of an entry has \(bits(EntryPlace.blockCountMax)) bits for the number of its",
        "| bytes of a value file | \(bytes(Limits.valueFileBytesMax)), and at most",
        "| bytes of a log | \(bytes(Limits.logBytesMax + 1)) − 1 |",
        "| openings of one log | \(grouped(UInt16.max)) |",
        "numbers of files | 2^\(bits(Limits.countMax)) |",
        "| bytes of a manifest | \(bytes(Limits.manifestBytesMax)) |",
        "cut off | \(Limits.partAgeMillisecondsMax == 7 * 86_400_000 ? "a week" : "?") |",
        "| attempts to open beside a writer | \(Limits.readOnlyAttemptsMax) |",
        "| segments of one offer | \(grouped(Limits.offeredSegmentsMax)), with tables of "
            + "\(bytes(Limits.offeredTablesBytesMax)) each |",
    ].map { Self("Limits", $0) }

    private static let limitsOfMemory: [Self] = [
        "| logs that wait to be sealed | \(Limits.sealQueueMax), beside",
        "| states of datasets that nobody holds | \(grouped(Limits.keptDatasetStatesMax)):",
        "| spans of deleted keys that walks leap over | \(Limits.gapsMax) |",
        "reconciliation | \(Limits.sumTablesMax), with \(grouped(Limits.sumLeavesMax)) leaves",
        "| places of damage that are told | \(grouped(Limits.damagedPlacesMax)) in one opening",
        "| datasets whose changes are noted | \(grouped(Limits.rosterNamesMax)):",
        "\(StoreOptions().clockAheadMax.components.seconds / 60) minutes unless it says",
    ].map { Self("Limits", $0) }

    /// Of a limit so large that writing takes all that it can use.
    private static var writingBytesMax: Int {
        let limit = 1 << 40
        return limit - MemoryBudget(StoreOptions(memoryLimit: limit)).blockCacheBytes
    }

    private static let tuning: [Self] = [
        "``StoreOptions/memoryLimit``, \(bytes(Limits.memoryLimit.lowerBound)) or more,",
        "takes \(bytes(MemoryBudget.workingBytesDefault)) for writing and merging",
        "which has \(bytes(MemoryBudget.blockCacheBytesDefault)) unless",
        "(\(bytes(writingBytesMax)) with logs of \(bytes(StoreOptions().segmentBytes)))",
        "merging: \(SegmentWriter.bytesEachEntry) bytes for each entry of the segment",
        "at most \(bytes(Limits.segmentEntriesMax * SegmentWriter.bytesEachEntry)) |",
        "up to three logs: \(MemoryLayout<MemtableNode>.stride) bytes an operation",
        "the states of up to \(grouped(Limits.keptDatasetStatesMax)) datasets",
        "The size at which a log is sealed (\(bytes(StoreOptions().segmentBytes))).",
        "with more than \(Engine.runsManyMax) runs writers are slowed down",
        "(\(bytes(StoreOptions().largeValueBytes))). An entry with a value of",
    ].map { Self("Tuning", $0) }

    private static let durability: [Self] = [
        Self("Durability", "deletion of at most \(bytes(LogSegment.scratchPayloadMax)), key and")
    ]

    private static let compaction: [Self] = [
        "where a ``StoreOptions/memoryLimit`` leaves less than "
            + "\(bytes(MemoryBudget.workingBytesDefault)) beside the block cache",
        "one of which \(bytes(Limits.valueFileBytesMax)) of large values are written",
        "once there are \([8: "eight"][CompactionChoice.runsMin] ?? "?") (size-tiered)",
        "at least \(grouped(CompactionChoice.tombstonesMin)) tombstones of a dataset",
        "and at least a \([4: "quarter"][CompactionChoice.tombstoneShare] ?? "?") as many as",
        "at most \([4: "four"][CompactionChoice.tombstoneShare] ?? "?") entries are written anew",
        "``StoreOptions/largeValueBytes`` (\(bytes(StoreOptions().largeValueBytes))) or more",
        "(\(StoreOptions().tombstoneAge.components.seconds / 86_400) days), as long as any",
        "A walk that has passed over \(GapMemory.passedMin) dead records or more",
        "remembers the \(Limits.gapsMax) spans that were used last",
        "more with each \(grouped(SegmentMerge.stepsMax)) entries that are sealed",
        "unless there are \(Engine.runsYieldMax) runs or more",
        "With more than \(Engine.runsManyMax) runs, where merging goes by itself",
        "at the next \(grouped(SegmentMerge.stepsMax)) entries, or "
            + "\(bytes(SegmentMerge.stepsMax << 10)) of values",
    ].map { Self("Compaction", $0) }

    private static let format: [Self] = [
        "Format version \(FileHeader.formatVersion), byte by byte",
        "The first \(FileHeader.byteCount) bytes of manifest, logs,",
        "compression. \(BlockHeader.byteCount) bytes of header, then",
        "Blocks begin at multiples of \(LogSegment.alignment).",
        "less than 2^\(bits(UInt64(DatasetID.max) / 2 + 1)) |",
        "| expiry | \(EntryLayout.expiryByteCount) bytes,",
        "name* is 1 to \(Limits.datasetNameBytesMax) of the characters",
        "A log with the greatest epoch, \(grouped(UInt16.max)), is not continued",
        "(a counter of \(grouped(UInt16.max)) in its time)",
        "An origin has at most \(bytes(Limits.partOriginBytesMax)).",
        "the last \(grouped(Limits.systemDatasetNumbers.count)) up to 2^31 − "
            + "\((1 << 31) - Limits.datasetNumberMax) are kept for them",
    ].map { Self("FileFormat", $0) }

    private static let segments: [Self] = [
        "A segment has at most 2^\(bits(EntryPlace.blockCountMax)) data blocks.",
        "A block has at most \(grouped(DataBlock.bytesMax)) bytes before compression",
        "begins before its \(grouped(EntryPlace.offsetEnd))th byte",
        "and in the lower \(EntryPlace.offsetBits) its offset there",
        "At most \(grouped(ChangeIndex.changesPerBlock)) lines a block.",
        "buckets of \(HashIndex.bucketByteCount) bytes, no header",
        "hashes of up to \([10: "ten"][HashIndex.keysPerBucket] ?? "?") keys",
        "XXH3-64 of each \(grouped(HashIndex.bucketsPerChunk)) buckets",
        "**Footer**, the last \(SegmentFooter.byteCount) bytes:",
    ].map { Self("FileFormat", $0) }
}
