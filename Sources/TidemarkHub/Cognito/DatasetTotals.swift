import Tidemark

/// How much a dataset holds, by which the API's limits go.
struct DatasetTotals: Hashable, Sendable {
    /// Live ones.
    var records = 0
    var tombstones = 0
    /// Of the keys and values of live records.
    var bytes = 0

    init() {}

    /// By a walk over all records. O(n).
    init(of dataset: Dataset) throws(StoreError) {
        let cursor = try dataset.records(includingDeleted: true)
        while let (keyBytes, valueBytes) = try cursor.withNext({ key, value in
            (key.byteCount, value?.byteCount)
        }) {
            if let valueBytes {
                records += 1
                bytes += keyBytes + valueBytes
            } else {
                tombstones += 1
            }
        }
    }

    /// - Parameters:
    ///   - key: of the record.
    ///   - former: as it was; nil if there was none.
    ///   - value: as it will be; nil if it is removed.
    mutating func replace(_ former: Record?, by value: [UInt8]?, key: [UInt8]) {
        if let former {
            if let formerValue = former.value {
                records -= 1
                bytes -= key.count + formerValue.count
            } else {
                tombstones -= 1
            }
        }
        if let value {
            records += 1
            bytes += key.count + value.count
        } else {
            tombstones += 1
        }
    }

    /// A change may leave a dataset larger than it may be, as replicas can make one, but may not
    /// make it larger still.
    ///
    /// - Throws: `limitExceeded`.
    func check(after former: DatasetTotals, _ limits: HubLimits) throws(APIFailure) {
        if records > limits.recordsPerDatasetMax, records > former.records {
            throw APIFailure(
                .limitExceeded,
                "the dataset would have \(records) records, and may have "
                    + "\(limits.recordsPerDatasetMax); remove some")
        }
        if bytes > limits.datasetBytesMax, bytes > former.bytes {
            throw APIFailure(
                .limitExceeded,
                "the dataset would have \(bytes) bytes of keys and values, and may have "
                    + "\(limits.datasetBytesMax); remove some")
        }
        let tombstonesMax = limits.recordsPerDatasetMax * limits.tombstonesPerRecordMax
        if tombstones > tombstonesMax, tombstones > former.tombstones {
            throw APIFailure(
                .limitExceeded,
                "the dataset remembers \(tombstonesMax) removed records, and takes no more; "
                    + "put other values in place of them, or delete the dataset")
        }
    }
}
