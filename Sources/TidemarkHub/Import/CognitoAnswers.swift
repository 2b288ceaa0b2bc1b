// What is read of answers of Cognito Sync and Cognito Identity; further members are passed over.
// Dates are seconds since 1970 with a fraction.

struct ListIdentitiesAnswer: Decodable, Sendable {
    let identities: [ListedIdentity]?
    let nextToken: String?

    enum CodingKeys: String, CodingKey {
        case identities = "Identities"
        case nextToken = "NextToken"
    }
}

/// An identity as it is listed or described.
struct ListedIdentity: Decodable, Hashable, Sendable {
    let id: String
    /// The providers of its logins; whose logins they are is told by nobody.
    let providers: [String]?
    let creationDate: Double?

    enum CodingKeys: String, CodingKey {
        case id = "IdentityId"
        case providers = "Logins"
        case creationDate = "CreationDate"
    }
}

struct LookupDeveloperIdentityAnswer: Decodable, Sendable {
    let users: [String]?
    let nextToken: String?

    enum CodingKeys: String, CodingKey {
        case users = "DeveloperUserIdentifierList"
        case nextToken = "NextToken"
    }
}

struct ListDatasetsAnswer: Decodable, Sendable {
    struct Dataset: Decodable, Sendable {
        let name: String

        enum CodingKeys: String, CodingKey {
            case name = "DatasetName"
        }
    }

    let datasets: [Dataset]?
    let nextToken: String?

    enum CodingKeys: String, CodingKey {
        case datasets = "Datasets"
        case nextToken = "NextToken"
    }
}

struct ListRecordsAnswer: Decodable, Sendable {
    struct Record: Decodable, Sendable {
        let key: String
        let value: String?
        let syncCount: UInt64
        let lastModifiedBy: String?
        let deviceLastModifiedDate: Double?

        enum CodingKeys: String, CodingKey {
            case key = "Key"
            case value = "Value"
            case syncCount = "SyncCount"
            case lastModifiedBy = "LastModifiedBy"
            case deviceLastModifiedDate = "DeviceLastModifiedDate"
        }
    }

    let records: [Record]?
    let nextToken: String?
    let datasetSyncCount: UInt64
    let exists: Bool?
    let wasDeleted: Bool?
    let mergedDatasetNames: [String]?

    enum CodingKeys: String, CodingKey {
        case records = "Records"
        case nextToken = "NextToken"
        case datasetSyncCount = "DatasetSyncCount"
        case exists = "DatasetExists"
        case wasDeleted = "DatasetDeletedAfterRequestedSyncCount"
        case mergedDatasetNames = "MergedDatasetNames"
    }
}

/// The body of a question to Cognito Identity; members that are nil are left out.
struct IdentityQuestion: Encodable, Sendable {
    var poolID: String?
    var identityID: String?
    var resultsMax: Int?
    var nextToken: String?

    enum CodingKeys: String, CodingKey {
        case poolID = "IdentityPoolId"
        case identityID = "IdentityId"
        case resultsMax = "MaxResults"
        case nextToken = "NextToken"
    }
}

/// Of an answer that says no.
struct RefusalAnswer: Decodable, Sendable {
    let type: String?
    let message: String?
    let capitalMessage: String?

    enum CodingKeys: String, CodingKey {
        case type = "__type"
        case message
        case capitalMessage = "Message"
    }
}
