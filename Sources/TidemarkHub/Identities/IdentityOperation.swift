/// The operations of the Cognito Identity API that the hub answers, by their names in the service
/// model 2014-06-30: those by which clients of Cognito Sync get credentials, and by which services
/// manage identities.
enum IdentityOperation: String, CaseIterable, Sendable {
    case getID = "GetId"
    case getCredentials = "GetCredentialsForIdentity"
    case getOpenIDToken = "GetOpenIdToken"
    case unlinkIdentity = "UnlinkIdentity"
    case getDeveloperToken = "GetOpenIdTokenForDeveloperIdentity"
    case lookupDeveloper = "LookupDeveloperIdentity"
    case mergeDevelopers = "MergeDeveloperIdentities"
    case unlinkDeveloper = "UnlinkDeveloperIdentity"
    case describeIdentity = "DescribeIdentity"
    case listIdentities = "ListIdentities"
    case deleteIdentities = "DeleteIdentities"

    private static let prefix = "AWSCognitoIdentityService."

    /// - Parameter target: the header `X-Amz-Target`; nil if it is missing.
    /// - Throws: `unknownOperation`.
    init(target: String?) throws(APIFailure) {
        guard let target, target.hasPrefix(Self.prefix),
            let found = Self(rawValue: String(target.dropFirst(Self.prefix.count)))
        else {
            throw APIFailure(
                .unknownOperation,
                "X-Amz-Target names no operation of this hub, such as \(Self.prefix)GetId")
        }
        self = found
    }

    /// How the header `X-Amz-Target` names it.
    var target: String { Self.prefix + rawValue }

    /// Whether it takes the signature of a developer. The others are how one gets credentials, and
    /// take tokens in their bodies, or nothing.
    var isSigned: Bool {
        switch self {
        case .getID, .getCredentials, .getOpenIDToken, .unlinkIdentity: false
        case .getDeveloperToken, .lookupDeveloper, .mergeDevelopers, .unlinkDeveloper,
            .describeIdentity, .listIdentities, .deleteIdentities:
            true
        }
    }

    /// Whether it can make an identity, of which only so many may be made at a time.
    var makesIdentities: Bool { self == .getID || self == .getDeveloperToken }
}
