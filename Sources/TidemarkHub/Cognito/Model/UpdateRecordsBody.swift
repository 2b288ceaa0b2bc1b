/// The body of UpdateRecords. What the model requires is looked at by `UpdateRequest`, which says
/// what is missing in the API's own words.
struct UpdateRecordsBody: Decodable, Sendable {
    let deviceID: String?
    let recordPatches: [RecordPatchBody]?
    let syncSessionToken: String?

    private enum CodingKeys: String, CodingKey {
        case deviceID = "DeviceId"
        case recordPatches = "RecordPatches"
        case syncSessionToken = "SyncSessionToken"
    }
}

/// One patch of it.
struct RecordPatchBody: Decodable, Sendable {
    let operation: String?
    let key: String?
    let value: String?
    let syncCount: Int64?
    /// Seconds since 1970.
    let deviceLastModifiedDate: Double?

    private enum CodingKeys: String, CodingKey {
        case operation = "Op"
        case key = "Key"
        case value = "Value"
        case syncCount = "SyncCount"
        case deviceLastModifiedDate = "DeviceLastModifiedDate"
    }
}
