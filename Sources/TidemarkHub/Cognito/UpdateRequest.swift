import TidemarkSync

/// A call of UpdateRecords whose members were checked, one by one.
struct UpdateRequest: Sendable {
    let context: UpdateContext
    /// Of the dataset in the store.
    let storeName: String
    let session: SyncSession
    /// Of keys that are all different.
    let patches: [RecordPatch]
    /// Whom its records name as who wrote them.
    let author: String
    /// By which it is known if it comes again.
    let mark: CallMark

    /// - Throws: `serialization`, `invalidParameter`, `limitExceeded` for too many patches.
    init(
        _ call: SyncCall, _ limits: HubLimits, _ clock: any SyncEnvironment, _ secrets: HubSecrets
    ) throws(APIFailure) {
        let body = try APICoding.decode(UpdateRecordsBody.self, from: call.body)
        let (identity, dataset) = (try call.identity(), try call.datasetName())
        storeName = StoreNames.dataset(dataset, of: identity)
        var deviceID: DeviceID?
        if let text = body.deviceID {
            guard let id = DeviceID(text) else {
                throw APIFailure(
                    .invalidParameter,
                    "DeviceId must have 1...\(APINames.deviceIDCharactersMax) characters")
            }
            deviceID = id
        }
        context = UpdateContext(
            pool: try call.pool(), identity: identity, dataset: dataset, deviceID: deviceID,
            principal: call.principal)
        author = Self.author(of: call.principal, deviceID, identity)
        let bodies = body.recordPatches ?? []
        guard bodies.count <= limits.patchesMax else {
            throw APIFailure(
                .limitExceeded,
                "\(bodies.count) patches came in one call, which takes \(limits.patchesMax); send "
                    + "them in several")
        }
        var patches: [RecordPatch] = []
        var keys: Set<[UInt8]> = []
        for (index, body) in bodies.enumerated() {
            let patch = try RecordPatch(body, at: index, limits)
            guard keys.insert(patch.key).inserted else {
                throw RecordPatch.invalid(index, "Key", "comes more than once in the call")
            }
            patches.append(patch)
        }
        self.patches = patches
        session = try SyncSession(token: body.syncSessionToken, of: storeName, clock, secrets)
        mark = CallMark(session: session, author: author, patches: patches)
    }

    private static func author(
        of principal: Principal, _ deviceID: DeviceID?, _ identity: IdentityID
    ) -> String {
        if let deviceID { return deviceID.text }
        guard case .developer(let keyID, _) = principal else { return identity.text }
        return keyID
    }
}

/// What is to become of one record.
struct RecordPatch: Hashable, Sendable {
    /// UTF-8.
    let key: [UInt8]
    /// nil if the record is to be removed.
    let value: [UInt8]?
    /// The API's count of the record that the client knew; 0 if it knew of none.
    let count: UInt64
    /// By the client's clock, since 1970; nil if it did not say.
    let deviceMilliseconds: Int64?

    /// - Parameter index: among the patches of the call, to name it by.
    /// - Throws: `invalidParameter`.
    init(_ body: RecordPatchBody, at index: Int, _ limits: HubLimits) throws(APIFailure) {
        guard let key = body.key, Self.fits(key, 1...max(1, limits.recordKeyMax)) else {
            throw Self.invalid(index, "Key", "must have 1...\(limits.recordKeyMax) characters")
        }
        self.key = Array(key.utf8)
        switch body.operation {
        case "replace":
            guard let value = body.value else {
                throw Self.invalid(index, "Value", "is missing; a removal has the Op remove")
            }
            guard Self.fits(value, 0...max(0, limits.recordValueMax)) else {
                throw Self.invalid(
                    index, "Value", "may have at most \(limits.recordValueMax) characters")
            }
            self.value = Array(value.utf8)
        case "remove":
            // Some clients send an empty value with it.
            value = nil
        default:
            throw Self.invalid(index, "Op", "must be replace or remove")
        }
        guard let count = body.syncCount, count >= 0 else {
            throw Self.invalid(index, "SyncCount", "must be a number of 0 or more")
        }
        self.count = UInt64(count)
        if let seconds = body.deviceLastModifiedDate {
            guard let date = APIDate(seconds: seconds) else {
                throw Self.invalid(
                    index, "DeviceLastModifiedDate",
                    "must be seconds since 1970, up to the year 9999")
            }
            deviceMilliseconds = date.milliseconds
        } else {
            deviceMilliseconds = nil
        }
    }

    static func invalid(_ index: Int, _ member: String, _ problem: String) -> APIFailure {
        APIFailure(.invalidParameter, "RecordPatches[\(index)].\(member) \(problem)")
    }

    /// Whether a text has so many Unicode scalars, of which each takes a byte at least.
    static func fits(_ text: String, _ bounds: ClosedRange<Int>) -> Bool {
        let byteCount = text.utf8.count
        if byteCount <= bounds.upperBound { return byteCount >= bounds.lowerBound }
        return byteCount / 4 <= bounds.upperBound
            && bounds.contains(text.unicodeScalars.count)
    }
}
