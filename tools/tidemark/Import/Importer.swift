import Tidemark

/// Stores the records of a reader in batches.
///
/// A batch costs one block of the log, one checksum and at most one write, instead of one each for
/// every record; and memory is bounded by one batch however large the file.
struct Importer {
    static let batchRecordsMax = 1_000
    /// Large values end a batch early.
    private static let batchBytesMax = 4 << 20

    let dataset: Dataset
    let skipsBadLines: Bool
    let durability: Durability

    private(set) var storedCount = 0
    private(set) var skippedCount = 0
    private(set) var firstSkipped: BadLine?

    private var batch = WriteBatch()
    private var batchBytes = 0

    init(dataset: Dataset, skipsBadLines: Bool, durability: Durability) {
        self.dataset = dataset
        self.skipsBadLines = skipsBadLines
        self.durability = durability
    }

    /// Stores every record up to the end, or to the first bad line if they are not to be skipped.
    mutating func run(
        _ reader: inout some RecordReader, of bytesTotal: UInt64?, _ bar: ProgressBar
    ) throws {
        while true {
            do {
                guard let record = try reader.next() else { break }
                try check(record)
                batch.put(
                    record.value, for: record.key, in: dataset, expiresAt: record.expiresAt)
                batchBytes += record.key.count + record.value.count
            } catch let bad as BadLine {
                guard skipsBadLines else {
                    try store()
                    throw bad
                }
                skippedCount += 1
                firstSkipped = firstSkipped ?? bad
            }
            if batch.count >= Self.batchRecordsMax || batchBytes >= Self.batchBytesMax {
                try store()
                bar.update(bytes: reader.bytesRead, of: bytesTotal, items: storedCount)
            }
        }
        try store()
    }

    private mutating func store() throws {
        guard !batch.isEmpty else { return }
        try dataset.store.write(batch, durability: durability)
        storedCount += batch.count
        batch = WriteBatch()
        batchBytes = 0
    }

    /// The store would refuse the whole batch; a bad record must not take good ones with it.
    private func check(_ record: ImportedRecord) throws {
        let problem: String
        if record.key.isEmpty {
            problem = "the key is empty"
        } else if record.key.count > Limits.keyBytesMax {
            problem = tooLong("key", record.key.count, Limits.keyBytesMax)
        } else if record.value.count > Limits.valueBytesMax {
            problem = tooLong("value", record.value.count, Limits.valueBytesMax)
        } else {
            return
        }
        throw BadLine(line: record.line, problem: problem)
    }
    private func tooLong(_ what: String, _ count: Int, _ countMax: Int) -> String {
        "the \(what) has \(Quantities.grouped(count)) bytes, and \(Quantities.grouped(countMax)) "
            + "are the most"
    }
}
