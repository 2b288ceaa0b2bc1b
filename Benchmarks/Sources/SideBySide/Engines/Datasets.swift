// An engine without datasets has them the way its users do: the dataset's number leads the key.
extension Session {
    func fillDataset(_ dataset: Int, records: Int, values: Values) throws {
        try fillAtOnce(dataset..<(dataset + 1), records: records, values: values)
    }

    /// Fifty datasets are a batch.
    func fillDatasets(_ datasets: Range<Int>, records: Int, values: Values) throws {
        for start in stride(from: datasets.lowerBound, to: datasets.upperBound, by: 50) {
            try fillAtOnce(
                start..<min(start + 50, datasets.upperBound), records: records, values: values)
        }
    }

    private func fillAtOnce(_ datasets: Range<Int>, records: Int, values: Values) throws {
        let count = datasets.count * records
        try withUnsafeTemporaryAllocation(
            byteCount: count * Keys.bytes, alignment: 16
        ) { keys in
            var batch: [UnsafeRawBufferPointer] = []
            batch.reserveCapacity(count)
            for dataset in datasets {
                for record in 0..<records {
                    let number = datasetKey(dataset, record)
                    Keys.write(number, to: keys.baseAddress! + batch.count * Keys.bytes)
                    batch.append(values[number])
                }
            }
            try writeBatch(
                keys: UnsafeRawBufferPointer(keys), values: batch, ascending: false)
        }
    }

    func get(dataset: Int, record: Int, checksum: inout UInt64) throws -> Int? {
        try withUnsafeTemporaryAllocation(byteCount: Keys.bytes, alignment: 16) { key in
            Keys.write(datasetKey(dataset, record), to: key.baseAddress!)
            return try get(UnsafeRawBufferPointer(key), checksum: &checksum)
        }
    }
}

/// Decides the value of a dataset's record, which must be the same for all engines, and the key of
/// those that have no datasets.
func datasetKey(_ dataset: Int, _ record: Int) -> Int {
    dataset * 1_000_000 + record
}
