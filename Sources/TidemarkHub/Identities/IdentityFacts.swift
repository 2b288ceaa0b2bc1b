import FoundationEssentials
import Tidemark

/// What the hub knows of an identity.
struct IdentityFacts: Hashable, Sendable {
    /// A merge into another identity that is under way: what it goes on with after a stop.
    struct Merging: Hashable, Sendable, Codable {
        let into: String
        /// The dataset that is being moved, by its name in the store; nil before the first one.
        var dataset: String?
        /// Where it goes.
        var target: String?
        /// Into which dataset of the other identity that is to be merged by its devices; nil if the
        /// other one had none of the name.
        var root: String?
        /// Whose it was.
        var origin: String?
    }

    let id: IdentityID
    let pool: PoolID
    /// In milliseconds since 1970-01-01 UTC.
    let created: UInt64
    /// Of these facts, not of datasets.
    var modified: UInt64
    /// Whom the identity has signed in with. None: a guest.
    var logins: [VerifiedLogin] = []
    /// The identity that has all that this one had.
    var mergedInto: IdentityID?
    /// False once it was merged, lost its last login, or is being deleted: no credentials of it are
    /// taken any more.
    var isEnabled = true
    var merging: Merging?
    /// Identities of which ``merging`` says that they go into this one.
    var absorbing: [IdentityID] = []

    /// More people sign in with a few.
    static let loginsMax = 20

    init(id: IdentityID, pool: PoolID, created: UInt64, logins: [VerifiedLogin] = []) {
        self.id = id
        self.pool = pool
        self.created = created
        self.logins = logins
        modified = created
    }

    var isGuest: Bool { logins.isEmpty }

    /// As they lie in the store. Members that are not known are passed over.
    private struct Stored: Codable {
        let pool: String
        let created: UInt64
        let modified: UInt64
        let logins: [VerifiedLogin]
        let mergedInto: String?
        let isEnabled: Bool
        let merging: Merging?
        let absorbing: [String]?
    }

    /// - Throws: never for what ``init(_:_:)`` or the other initialiser has made.
    func encoded() throws(StoreError) -> [UInt8] {
        let stored = Stored(
            pool: pool.text, created: created, modified: modified, logins: logins,
            mergedInto: mergedInto?.text, isEnabled: isEnabled, merging: merging,
            absorbing: absorbing.isEmpty ? nil : absorbing.map(\.text))
        guard let data = try? JSONEncoder().encode(stored) else {
            throw Self.unreadable(id)
        }
        return Array(data)
    }

    /// - Throws: `corruption` for what is no such facts.
    init(_ id: IdentityID, _ bytes: [UInt8]) throws(StoreError) {
        guard let stored = try? JSONDecoder().decode(Stored.self, from: Data(bytes)),
            let pool = PoolID(stored.pool)
        else { throw Self.unreadable(id) }
        self.id = id
        self.pool = pool
        created = stored.created
        modified = stored.modified
        logins = stored.logins
        isEnabled = stored.isEnabled
        merging = stored.merging
        mergedInto = stored.mergedInto.flatMap { IdentityID($0) }
        absorbing = (stored.absorbing ?? []).compactMap { IdentityID($0) }
    }

    private static func unreadable(_ id: IdentityID) -> StoreError {
        StoreError(
            .corruption,
            "the facts of the identity \(id) are not readable; restore the dataset "
                + "\(HubDatasets.identities) from a backup")
    }
}
