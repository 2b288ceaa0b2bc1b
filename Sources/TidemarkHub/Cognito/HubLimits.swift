/// What an identity may have at most. The defaults are those of Cognito Sync.
public struct HubLimits: Hashable, Sendable {
    /// Merged datasets count. More: `LimitExceeded`.
    public var datasetsPerIdentityMax = 20
    /// Live ones. More: `LimitExceeded`.
    public var recordsPerDatasetMax = 1_024
    /// Bytes of the keys and values of live records. More: `LimitExceeded`.
    public var datasetBytesMax = 1_048_576
    /// Deletions that are remembered for each record that is allowed: who removes key after key
    /// would fill the store with them otherwise. More: `LimitExceeded`.
    public var tombstonesPerRecordMax = 16
    /// Unicode scalars in a key. More: `InvalidParameter`.
    public var recordKeyMax = 1_024
    /// Unicode scalars in a value. More: `InvalidParameter`.
    public var recordValueMax = 1_048_575
    /// Patches of one UpdateRecords. More: `LimitExceeded`.
    public var patchesMax = 1_024
    /// Records of one answer; one that asks for more gets so many.
    public var pageRecordsMax = 1_024
    /// Datasets of one answer, likewise.
    public var pageDatasetsMax = 64
    /// The oldest give way to new ones.
    public var devicesPerIdentityMax = 100
    /// More: `LimitExceeded`.
    public var subscriptionsPerDatasetMax = 100

    public init() {}
}

extension HubLimits {
    /// Names that datasets of an identity ever had: of one that was deleted its sync count is kept
    /// for good, so who makes and deletes one after the other would fill the store otherwise.
    var datasetNamesPerIdentityMax: Int {
        let (product, overflow) = datasetsPerIdentityMax.multipliedReportingOverflow(
            by: Self.namesPerDatasetMax)
        return overflow ? .max : product
    }

    /// For each dataset that there may be.
    private static let namesPerDatasetMax = 16
}
