/// A record of one of the store's own datasets, to be written with what it is about.
package struct SystemNote: Sendable {
    /// Of the same store as the batch.
    package let dataset: Dataset
    package let key: [UInt8]
    /// nil deletes the record.
    package let value: [UInt8]?

    package init(in dataset: Dataset, key: [UInt8], value: [UInt8]?) {
        self.dataset = dataset
        self.key = key
        self.value = value
    }
}
