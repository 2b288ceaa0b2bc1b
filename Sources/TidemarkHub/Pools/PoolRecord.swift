import TidemarkSync

/// What the Set… operations have made of a pool, as it is kept in the dataset `hub:pools` under
/// the pool's id: as JSON, so that later versions can add to it. Members that are not known are
/// passed over, and lost with the next change.
struct PoolRecord: Hashable, Sendable {
    /// Whom SNS would have delivered to. Here it says that the pool has push, and for which
    /// platforms.
    struct PushSync: Hashable, Sendable {
        var applicationARNs: [String] = []
        var roleARN: String?
    }

    struct Stream: Hashable, Sendable {
        var name: String?
        var roleARN: String?
        var isEnabled = false
    }

    var pushSync: PushSync?
    var stream: Stream?
    /// The value of the event `SyncTrigger`; nil for no trigger.
    var syncTrigger: String?

    init() {}

    var hasPush: Bool { !(pushSync?.applicationARNs.isEmpty ?? true) }

    var isStreaming: Bool { stream?.isEnabled ?? false }

    /// Whether push is set up for the devices of a platform, as by
    /// `arn:aws:sns:us-east-1:1234:app/GCM/notes`.
    func hasPush(for platform: DevicePlatform) -> Bool {
        pushSync?.applicationARNs.contains { $0.contains(":app/\(platform.rawValue)/") } ?? false
    }
}

/// Of the service model.
enum DevicePlatform: String, CaseIterable, Sendable {
    case apns = "APNS"
    case apnsSandbox = "APNS_SANDBOX"
    case gcm = "GCM"
    case adm = "ADM"
}

// MARK: - As it is stored

extension PoolRecord {
    var encoded: [UInt8] {
        var object = JSONObject()
        if let pushSync {
            var member = JSONObject()
            member["applications"] = .array(pushSync.applicationARNs.map { .string($0) })
            member["role"] = pushSync.roleARN.map { .string($0) }
            object["push"] = .object(member)
        }
        if let stream {
            var member = JSONObject()
            member["name"] = stream.name.map { .string($0) }
            member["role"] = stream.roleARN.map { .string($0) }
            member["enabled"] = .bool(stream.isEnabled)
            object["stream"] = .object(member)
        }
        object["syncTrigger"] = syncTrigger.map { .string($0) }
        return JSONValue.object(object).encoded
    }

    /// nil for bytes that are not of that form.
    init?(encoded bytes: [UInt8]) {
        guard let value = try? JSONValue(parsing: bytes), case .object(let object) = value else {
            return nil
        }
        self.init()
        if let push = object["push"] {
            let applications = push["applications"]?.elements?.compactMap(\.text) ?? []
            pushSync = PushSync(applicationARNs: applications, roleARN: push["role"]?.text)
        }
        if let stream = object["stream"] {
            self.stream = Stream(
                name: stream["name"]?.text, roleARN: stream["role"]?.text,
                isEnabled: stream["enabled"] == true)
        }
        syncTrigger = object["syncTrigger"]?.text
    }
}
