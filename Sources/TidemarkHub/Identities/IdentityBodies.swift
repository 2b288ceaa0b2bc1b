import FoundationEssentials

/// What the operations take and answer, by the names of the service model. Members that are nil are
/// left out; such as are not known are passed over.
enum IdentityInput {
    struct GetID: Decodable {
        let poolID: String
        let logins: [String: String]?

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case logins = "Logins"
        }
    }

    /// Of GetCredentialsForIdentity and GetOpenIdToken.
    struct Identity: Decodable {
        let identityID: String
        let logins: [String: String]?

        private enum CodingKeys: String, CodingKey {
            case identityID = "IdentityId"
            case logins = "Logins"
        }
    }

    struct Unlink: Decodable {
        let identityID: String
        let logins: [String: String]
        let providers: [String]

        private enum CodingKeys: String, CodingKey {
            case identityID = "IdentityId"
            case logins = "Logins"
            case providers = "LoginsToRemove"
        }
    }

    struct DeveloperToken: Decodable {
        let poolID: String
        let identityID: String?
        let logins: [String: String]
        let seconds: Int64?

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case identityID = "IdentityId"
            case logins = "Logins"
            case seconds = "TokenDuration"
        }
    }

    struct Lookup: Decodable {
        let poolID: String
        let identityID: String?
        let user: String?
        let count: Int?
        let nextToken: String?

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case identityID = "IdentityId"
            case user = "DeveloperUserIdentifier"
            case count = "MaxResults"
            case nextToken = "NextToken"
        }
    }

    struct Merge: Decodable {
        let poolID: String
        let provider: String
        let source: String
        let destination: String

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case provider = "DeveloperProviderName"
            case source = "SourceUserIdentifier"
            case destination = "DestinationUserIdentifier"
        }
    }

    struct UnlinkDeveloper: Decodable {
        let poolID: String
        let identityID: String
        let provider: String
        let user: String

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case identityID = "IdentityId"
            case provider = "DeveloperProviderName"
            case user = "DeveloperUserIdentifier"
        }
    }

    struct List: Decodable {
        let poolID: String
        let count: Int
        let nextToken: String?
        let hidesDisabled: Bool?

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case count = "MaxResults"
            case nextToken = "NextToken"
            case hidesDisabled = "HideDisabled"
        }
    }

    struct Delete: Decodable {
        let identityIDs: [String]

        private enum CodingKeys: String, CodingKey {
            case identityIDs = "IdentityIdsToDelete"
        }
    }

    /// - Throws: `serialization`; `invalidParameter` for a member that is missing.
    static func decoded<Input: Decodable>(
        _ body: [UInt8], as type: Input.Type = Input.self
    ) throws(APIFailure) -> Input {
        let json = body.isEmpty ? Array("{}".utf8) : body
        do {
            return try JSONDecoder().decode(type, from: Data(json))
        } catch DecodingError.keyNotFound(let name, _) {
            throw APIFailure(.invalidParameter, "\(name.stringValue) is missing")
        } catch DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context)
        {
            let name = context.codingPath.first?.stringValue ?? "the body"
            throw APIFailure(.serialization, "\(name) is not of the type that it must be")
        } catch {
            throw APIFailure(.serialization, "the body is not JSON")
        }
    }
}

/// See ``IdentityInput``. Dates are in seconds since 1970-01-01 UTC.
enum IdentityOutput {
    struct Identity: Encodable {
        let identityID: String
        var token: String?
        var credentials: Credentials?

        private enum CodingKeys: String, CodingKey {
            case identityID = "IdentityId"
            case token = "Token"
            case credentials = "Credentials"
        }
    }

    struct Credentials: Encodable {
        let accessKeyID, secretKey, sessionToken: String
        let expiration: Int64

        private enum CodingKeys: String, CodingKey {
            case accessKeyID = "AccessKeyId"
            case secretKey = "SecretKey"
            case sessionToken = "SessionToken"
            case expiration = "Expiration"
        }

        init(_ credentials: TemporaryCredentials) {
            accessKeyID = credentials.accessKeyID
            secretKey = credentials.secretKey
            sessionToken = credentials.sessionToken
            expiration = credentials.expiresSeconds
        }
    }

    struct Users: Encodable {
        let identityID: String
        let users: [String]
        let nextToken: String?

        private enum CodingKeys: String, CodingKey {
            case identityID = "IdentityId"
            case users = "DeveloperUserIdentifierList"
            case nextToken = "NextToken"
        }
    }

    struct Description: Encodable {
        let identityID: String
        /// Names of providers, each once.
        let logins: [String]
        let created, modified: Double

        private enum CodingKeys: String, CodingKey {
            case identityID = "IdentityId"
            case logins = "Logins"
            case created = "CreationDate"
            case modified = "LastModifiedDate"
        }

        init(_ facts: IdentityFacts) {
            identityID = facts.id.text
            logins = Set(facts.logins.map(\.provider)).sorted()
            created = Double(facts.created) / 1_000
            modified = Double(facts.modified) / 1_000
        }
    }

    struct List: Encodable {
        let poolID: String
        let identities: [Description]
        let nextToken: String?

        private enum CodingKeys: String, CodingKey {
            case poolID = "IdentityPoolId"
            case identities = "Identities"
            case nextToken = "NextToken"
        }
    }

    struct Unprocessed: Encodable {
        struct Entry: Encodable {
            let identityID: String
            /// `AccessDenied` or `InternalServerError`.
            let code: String

            private enum CodingKeys: String, CodingKey {
                case identityID = "IdentityId"
                case code = "ErrorCode"
            }
        }

        let entries: [Entry]

        private enum CodingKeys: String, CodingKey {
            case entries = "UnprocessedIdentityIds"
        }
    }

    struct Nothing: Encodable {}

    /// - Throws: `internalError`, for no value that the hub makes.
    static func encoded(_ value: some Encodable) throws(APIFailure) -> [UInt8] {
        guard let data = try? JSONEncoder().encode(value) else {
            throw APIFailure(.internalError, "the hub failed; its log says why")
        }
        return Array(data)
    }
}
