// What answers tell of datasets and their use, with the names of the service model.

/// `Dataset`.
struct DatasetBody: Hashable, Sendable {
    let identity: IdentityID
    let name: String
    let created: APIDate
    let lastModified: APIDate
    /// nil if nobody ever wrote to it.
    let lastModifiedBy: String?
    /// Bytes of keys and values.
    let storageBytes: Int
    let recordCount: Int

    func write(to answer: inout JSONAnswer, as name: String? = nil) {
        answer.open("{", as: name)
        answer.add("IdentityId", text: identity.text)
        answer.add("DatasetName", text: self.name)
        answer.add("CreationDate", created)
        answer.add("LastModifiedDate", lastModified)
        if let lastModifiedBy { answer.add("LastModifiedBy", text: lastModifiedBy) }
        answer.add("DataStorage", storageBytes)
        answer.add("NumRecords", recordCount)
        answer.close("}")
    }
}

/// How much the datasets of an identity, or of all of a pool, hold.
struct StorageUsage: Hashable, Sendable {
    var datasetCount = 0
    /// Bytes of keys and values.
    var storageBytes = 0
    /// The last change of any; nil if there is none.
    var lastModified: APIDate?

    mutating func add(_ other: StorageUsage) {
        datasetCount += other.datasetCount
        storageBytes += other.storageBytes
        noteChange(other.lastModified)
    }

    mutating func add(_ dataset: DatasetBody) {
        datasetCount += 1
        storageBytes += dataset.storageBytes
        noteChange(dataset.lastModified)
    }

    private mutating func noteChange(_ date: APIDate?) {
        guard let date else { return }
        if date.milliseconds >= (lastModified?.milliseconds ?? 0) { lastModified = date }
    }

    /// `IdentityUsage`.
    func write(to answer: inout JSONAnswer, of identity: IdentityID, in pool: PoolID) {
        answer.open("{", as: "IdentityUsage")
        answer.add("IdentityId", text: identity.text)
        answer.add("IdentityPoolId", text: pool.text)
        if let lastModified { answer.add("LastModifiedDate", lastModified) }
        answer.add("DatasetCount", datasetCount)
        answer.add("DataStorage", storageBytes)
        answer.close("}")
    }

    /// `IdentityPoolUsage`.
    ///
    /// - Parameter name: of the member that it is; nil for an element of a list.
    func write(
        to answer: inout JSONAnswer, as name: String?, of pool: PoolID, sessionCount: UInt64
    ) {
        answer.open("{", as: name)
        answer.add("IdentityPoolId", text: pool.text)
        answer.add("SyncSessionsCount", sessionCount)
        answer.add("DataStorage", storageBytes)
        if let lastModified { answer.add("LastModifiedDate", lastModified) }
        answer.close("}")
    }
}
