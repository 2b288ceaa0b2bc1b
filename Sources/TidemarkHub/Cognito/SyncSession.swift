import TidemarkSync

/// The session token of ListRecords, which UpdateRecords must bring: the dataset as the client saw
/// it. Nothing of it is kept at the hub, so that it is good after a restart as well.
struct SyncSession: Hashable, Sendable {
    /// The store's sync count of the dataset when it was listed.
    let position: UInt64
    /// Of no other session: all that its token says behind the name of the dataset.
    let id: [UInt8]

    /// For how long a client may take to send its update.
    static let lifetimeMilliseconds: UInt64 = 900_000

    /// Payload: 16 bytes of the name's digest, the position, when it expires, and 8 bytes that are
    /// different each time.
    static func token(
        of storeName: String, at position: UInt64, _ clock: any SyncEnvironment,
        _ secrets: HubSecrets
    ) -> String {
        let expires = clock.now() + lifetimeMilliseconds
        var payload = DatasetMark.bytes(storeName)
        for number in [position, expires, clock.random()] { payload += BigEndian.bytes(number) }
        return SealedToken.seal(payload, .syncSession, secrets)
    }

    /// - Throws: `invalidParameter` if it is missing, is not one of this dataset, or has expired.
    init(
        token: String?, of storeName: String, _ clock: any SyncEnvironment, _ secrets: HubSecrets
    ) throws(APIFailure) {
        guard let token, !token.isEmpty else {
            throw APIFailure(
                .invalidParameter, "SyncSessionToken is missing; call ListRecords for one")
        }
        var rest = SealedToken.open(token, .syncSession, secrets).map { $0[...] } ?? []
        let mark = Array(rest.prefix(DatasetMark.count))
        rest = rest.dropFirst(DatasetMark.count)
        id = Array(rest)
        guard mark == DatasetMark.bytes(storeName), let position = BigEndian.take(&rest),
            let expires = BigEndian.take(&rest)
        else {
            throw APIFailure(
                .invalidParameter,
                "the sync session token is not one of this dataset; call ListRecords again")
        }
        guard clock.now() < expires else {
            throw APIFailure(
                .invalidParameter, "the sync session token has expired; call ListRecords again")
        }
        self.position = position
    }
}

/// By which a token knows the dataset that it is of.
enum DatasetMark {
    static let count = 16

    static func bytes(_ storeName: String) -> [UInt8] {
        Array(Digests.sha256(Array(storeName.utf8)).prefix(count))
    }
}
