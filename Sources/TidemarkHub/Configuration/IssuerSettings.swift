/// Who signs the tokens by which people show that they have signed in, and how they are verified.
public struct IssuerSettings: Hashable, Sendable {
    /// Of signatures. What a token says of its algorithm must be allowed here and fit its key;
    /// `none` never is.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
    }

    /// Where the keys come from.
    public enum Keys: Hashable, Sendable {
        /// One for HS256, at least 32 bytes.
        case shared(HubSecret)
        /// A JSON Web Key Set (RFC 7517) in a file.
        case file(path: String)
        /// One at an address, which is read again when a token names a key that it lacks.
        case url(String)
    }

    /// What clients call it in `Logins`, such as `accounts.example.com`.
    public var provider: String
    /// What must stand in `iss`.
    public var issuer: String
    /// One of them must stand in `aud`, or in `client_id` where there is none. Not empty.
    public var audiences: [String]
    public var algorithms: Set<Algorithm>
    public var keys: Keys
    /// How far the clocks may be apart.
    public var leewaySeconds: Int64 = 60

    public init(
        provider: String, issuer: String, audiences: [String], algorithms: Set<Algorithm>,
        keys: Keys
    ) {
        self.provider = provider
        self.issuer = issuer
        self.audiences = audiences
        self.algorithms = algorithms
        self.keys = keys
    }
}
