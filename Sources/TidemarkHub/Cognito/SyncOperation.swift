/// The operations of the Cognito Sync API, by their names in the service model 2014-06-30.
enum SyncOperation: String, CaseIterable, Sendable {
    case bulkPublish = "BulkPublish"
    case deleteDataset = "DeleteDataset"
    case describeDataset = "DescribeDataset"
    case describeIdentityPoolUsage = "DescribeIdentityPoolUsage"
    case describeIdentityUsage = "DescribeIdentityUsage"
    case getBulkPublishDetails = "GetBulkPublishDetails"
    case getCognitoEvents = "GetCognitoEvents"
    case getIdentityPoolConfiguration = "GetIdentityPoolConfiguration"
    case listDatasets = "ListDatasets"
    case listIdentityPoolUsage = "ListIdentityPoolUsage"
    case listRecords = "ListRecords"
    case registerDevice = "RegisterDevice"
    case setCognitoEvents = "SetCognitoEvents"
    case setIdentityPoolConfiguration = "SetIdentityPoolConfiguration"
    case subscribeToDataset = "SubscribeToDataset"
    case unsubscribeFromDataset = "UnsubscribeFromDataset"
    case updateRecords = "UpdateRecords"

    /// Whose credentials an operation takes.
    enum Audience: Sendable {
        /// The permanent ones of whoever runs the app's service.
        case developer
        /// The temporary ones that the hub gives to an identity.
        case identity
        case both
    }

    var audience: Audience {
        switch self {
        case .bulkPublish, .describeIdentityPoolUsage, .getBulkPublishDetails, .getCognitoEvents,
            .getIdentityPoolConfiguration, .listIdentityPoolUsage, .setCognitoEvents,
            .setIdentityPoolConfiguration:
            .developer
        case .registerDevice, .subscribeToDataset, .unsubscribeFromDataset: .identity
        case .deleteDataset, .describeDataset, .describeIdentityUsage, .listDatasets, .listRecords,
            .updateRecords:
            .both
        }
    }

    /// Whether it tells nothing but how much there is: also to who runs the hub.
    var tellsUsage: Bool {
        switch self {
        case .describeIdentityPoolUsage, .describeIdentityUsage, .listIdentityPoolUsage: true
        default: false
        }
    }

    var method: String {
        switch self {
        case .bulkPublish, .getBulkPublishDetails, .registerDevice, .setCognitoEvents,
            .setIdentityPoolConfiguration, .subscribeToDataset, .updateRecords:
            "POST"
        case .deleteDataset, .unsubscribeFromDataset: "DELETE"
        case .describeDataset, .describeIdentityPoolUsage, .describeIdentityUsage,
            .getCognitoEvents, .getIdentityPoolConfiguration, .listDatasets,
            .listIdentityPoolUsage, .listRecords:
            "GET"
        }
    }

    /// The path, segment by segment.
    var pattern: [Segment] {
        let pool: [Segment] = [.fixed("identitypools"), .pool]
        let identity = pool + [.fixed("identities"), .identity]
        let dataset = identity + [.fixed("datasets"), .dataset]
        switch self {
        case .listIdentityPoolUsage: return [.fixed("identitypools")]
        case .describeIdentityPoolUsage: return pool
        case .bulkPublish: return pool + [.fixed("bulkpublish")]
        case .getBulkPublishDetails: return pool + [.fixed("getBulkPublishDetails")]
        case .getCognitoEvents, .setCognitoEvents: return pool + [.fixed("events")]
        case .getIdentityPoolConfiguration, .setIdentityPoolConfiguration:
            return pool + [.fixed("configuration")]
        case .registerDevice:
            return pool + [.fixed("identity"), .identity, .fixed("device")]
        case .describeIdentityUsage: return identity
        case .listDatasets: return identity + [.fixed("datasets")]
        case .describeDataset, .deleteDataset, .updateRecords: return dataset
        case .listRecords: return dataset + [.fixed("records")]
        case .subscribeToDataset, .unsubscribeFromDataset:
            return dataset + [.fixed("subscriptions"), .device]
        }
    }

    /// A part of a path between two slashes.
    enum Segment: Hashable, Sendable {
        case fixed(String)
        case pool
        case identity
        case dataset
        case device
    }
}
