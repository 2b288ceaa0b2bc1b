public import Tidemark

/// Why an exchange with a peer stopped, where, and what to do about it.
///
/// Decide by ``code`` alone. The message is for people and may change; it ends with a remedy.
/// Whatever the error, no acknowledged write is lost and the exchange may be repeated: it goes on
/// after the last page that both sides know to be applied.
public struct SyncError: Error, Hashable, Sendable {
    /// The kinds of failure that a caller would answer differently.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        private init(_ description: String) {
            self.description = description
        }

        /// The peer cannot be reached or did not answer in time. Try again later.
        public static let unreachable = Code("unreachable")
        /// The peer refuses the token. Correct the token.
        public static let unauthorized = Code("unauthorized")
        /// The two sides have no version of the protocol in common. Update the older one.
        public static let protocolMismatch = Code("protocolMismatch")
        /// The peer sent what is no message of the protocol, or a damaged one. Check the address
        /// and what stands between the two.
        public static let badMessage = Code("badMessage")
        /// A message is larger than one side accepts, although it has no more than one record,
        /// which was left out; see `Dataset.failedRecords`. Raise the limit.
        public static let tooLarge = Code("tooLarge")
        /// A record is refused by the side that it was meant for. It was left out, and everything
        /// else was exchanged; see `Dataset.failedRecords`.
        public static let recordRefused = Code("recordRefused")
        /// A conflict waits that no policy settles. Nothing was pushed; settle it and repeat.
        public static let conflictPending = Code("conflictPending")
        /// The dataset was deleted on the other side. Choose a ``DatasetDeletedAction``.
        public static let datasetDeleted = Code("datasetDeleted")
        /// Writes kept arriving faster than they could be merged. Repeat the exchange.
        public static let contended = Code("contended")
        /// Both sides are the same store. (A copy of a store takes an id of its own when it meets
        /// the original, and the exchange goes on.)
        public static let sameReplica = Code("sameReplica")
        /// The peer took a new replica id, or another store stands behind its address now, and
        /// went on doing so for all attempts. Repeat the exchange.
        public static let peerChanged = Code("peerChanged")
        /// The peer keeps only a part of the dataset, and cannot say how the whole stands. Exchange
        /// with one that keeps all of it, or keep no more than the peer does. Of a bundle: this
        /// store keeps a part, so that it can neither make one nor take one in.
        public static let partialReplica = Code("partialReplica")
        /// Records went from the dataset into another one on the other side, which is to be
        /// exchanged first: else they would be gone here before they have come. The message says
        /// into which.
        public static let recordsMoved = Code("recordsMoved")
        /// The peer failed by its own account. See the message, and the peer's log.
        public static let peerFailed = Code("peerFailed")
        /// This side's store failed; see ``SyncError/storeError``.
        public static let store = Code("store")
        /// A bundle is cut off, or its bytes are not what they must be; ``SyncError/storeError``
        /// has the place. Get the file again.
        public static let damagedBundle = Code("damagedBundle")
        /// A bundle does not go on from what is here. The message says which one is needed.
        public static let wrongBundle = Code("wrongBundle")
        /// The exchange did not end within ``SyncOptions/deadline``. Repeat it to go on.
        public static let timedOut = Code("timedOut")
        /// There is no network, by the app's own account. Wait for one.
        public static let offline = Code("offline")
        /// There is only an expensive network, which the policy leaves alone. Wait or allow it.
        public static let expensiveNetwork = Code("expensiveNetwork")
        /// The task was cancelled. What was applied until then stays.
        public static let cancelled = Code("cancelled")
    }

    public let code: Code
    /// One line: what was wrong and what to do.
    public let message: String
    /// The other side, as far as it is known: a replica id or an address.
    public let peer: String?
    public let dataset: String?
    public let key: [UInt8]?
    /// The store's own error, if the code is ``Code/store``; the place of the damage, if it is
    /// ``Code/damagedBundle``.
    public let storeError: StoreError?
    /// After what time the peer wants to be asked again, if it has said so: it is busy, or takes no
    /// writes for now. A ``Synchronizer`` waits at least so long, as far as its
    /// ``BackOff/longest`` wait allows.
    public let retryAfter: Duration?

    public init(
        _ code: Code, _ message: String, peer: String? = nil, dataset: String? = nil,
        key: [UInt8]? = nil, storeError: StoreError? = nil, retryAfter: Duration? = nil
    ) {
        self.code = code
        self.message = message
        self.peer = peer
        self.dataset = dataset
        self.key = key
        self.storeError = storeError
        self.retryAfter = retryAfter
    }

    /// Wraps what the store of this side threw.
    public init(_ error: StoreError, dataset: String? = nil) {
        self.init(.store, error.message, dataset: dataset, storeError: error)
    }
}

extension SyncError: CustomStringConvertible {
    public var description: String {
        var places: [String] = []
        if let peer { places.append("peer \(peer)") }
        if let dataset { places.append("dataset \(dataset)") }
        if let key { places.append("key \(String(validating: key, as: UTF8.self) ?? "\(key)")") }
        if let location = storeError?.location { places.append("\(location)") }
        return places.isEmpty ? message : "\(message) [\(places.joined(separator: ", "))]"
    }
}

extension SyncError {
    /// The same error with the places filled in that the thrower did not know.
    func located(peer: String?, dataset: String?) -> SyncError {
        SyncError(
            code, message, peer: self.peer ?? peer, dataset: self.dataset ?? dataset, key: key,
            storeError: storeError, retryAfter: retryAfter)
    }

    static func badMessage(_ problem: String) -> SyncError {
        SyncError(
            .badMessage,
            "\(problem); check that the address leads to a Tidemark peer and repeat the exchange")
    }

    static func sameReplica(_ id: ReplicaID) -> SyncError {
        SyncError(
            .sameReplica,
            "both sides are replica \(id): the very same store, or a copy of it that keeps coming "
                + "back to that id; give the address of another store", peer: id.description)
    }

    static func damagedBundle(
        _ path: String, at offset: UInt64, _ problem: String
    ) -> SyncError {
        let message = "\(problem); copy the bundle again, or export it anew"
        return SyncError(
            .damagedBundle, message,
            storeError: StoreError(
                .corruption, message,
                location: StoreError.Location(path: path, offset: offset)))
    }

    static func cancelled(dataset: String? = nil) -> SyncError {
        SyncError(.cancelled, "the exchange was cancelled; repeat it to go on", dataset: dataset)
    }
}

/// Runs an engine call and wraps its error.
func engine<Result>(
    _ dataset: String? = nil, _ body: () throws(StoreError) -> Result
) throws(SyncError) -> Result {
    do throws(StoreError) {
        return try body()
    } catch {
        throw SyncError(error, dataset: dataset)
    }
}
