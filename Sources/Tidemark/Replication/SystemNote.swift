/// A record of one of the store's own datasets, to be written with what it is about.
package struct SystemNote: Sendable {
    /// What the store puts behind the value when it writes the note, since only then it is known.
    package enum Stamp: Hashable, Sendable {
        case nothing
        /// Which write the batch's write at that place became: 8 bytes each of the replica's first
        /// half, its second half and the counter, little-endian.
        case dot(ofWrite: Int)
        /// The dataset's sync counts before and after the batch: 8 bytes each, little-endian. The
        /// changes of the batch are those after the first and up to the second.
        case counts

        package var byteCount: Int {
            switch self {
            case .nothing: 0
            case .dot: 24
            case .counts: 16
            }
        }
    }

    /// Of the same store as the batch.
    package let dataset: Dataset
    package let key: [UInt8]
    /// nil deletes the record.
    package let value: [UInt8]?
    /// Of a note with a value.
    package let stamp: Stamp

    package init(
        in dataset: Dataset, key: [UInt8], value: [UInt8]?, stamp: Stamp = .nothing
    ) {
        self.dataset = dataset
        self.key = key
        self.value = value
        self.stamp = value == nil ? .nothing : stamp
    }

    /// Bytes of the value with its stamp.
    var valueCount: Int { (value?.count ?? 0) + stamp.byteCount }
}
