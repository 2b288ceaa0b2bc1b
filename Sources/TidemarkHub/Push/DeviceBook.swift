import Tidemark
import TidemarkSync

/// Devices, and what they want to hear of, in the hub's own datasets.
///
/// | dataset | key | value |
/// | --- | --- | --- |
/// | `hub:devices` | identity, 0, device | ``Device`` as JSON |
/// | `hub:subscriptions` | dataset, 0, device | the sync count told last, as JSON |
/// | `hub:notices` | pool, 0, identity, 0, device, 0, dataset | the sync count to tell, in digits |
///
/// The dataset is called as in the store, and so begins with its identity. A notice is there at
/// most once for each subscription: the newest takes the place of the one before.
enum DeviceBook {
    static let devicesName = StoreNames.ownPrefix + "devices"
    static let subscriptionsName = StoreNames.ownPrefix + "subscriptions"
    static let noticesName = StoreNames.ownPrefix + "notices"

    struct Device: Hashable, Sendable {
        let id: DeviceID
        let platform: DevicePlatform
        let token: String
        /// Milliseconds since 1970.
        let created: UInt64

        /// The same for the same device of an identity, so that who registers again, because the
        /// answer was lost or the app was started anew, is not told everything twice.
        ///
        /// In hexadecimal digits, since a command line takes a word that begins with a hyphen for
        /// an option.
        static func id(
            of identity: IdentityID, _ platform: DevicePlatform, token: String
        ) -> DeviceID? {
            let name = [identity.text, platform.rawValue, token].joined(separator: "\0")
            return DeviceID(Digests.hexadecimal(Digests.sha256(Array(name.utf8))))
        }

        init(id: DeviceID, platform: DevicePlatform, token: String, created: UInt64) {
            self.id = id
            self.platform = platform
            self.token = token
            self.created = created
        }

        var encoded: [UInt8] {
            let object = JSONObject([
                ("platform", JSONValue.string(platform.rawValue)),
                ("token", JSONValue.string(token)),
                ("created", JSONValue.number(JSONNumber(Int(clamping: created)))),
            ])
            return JSONValue.object(object).encoded
        }

        /// nil for bytes that are not of that form.
        init?(id: DeviceID, encoded bytes: [UInt8]) {
            guard let value = try? JSONValue(parsing: bytes),
                let platform = value["platform"]?.text.flatMap({ DevicePlatform(rawValue: $0) }),
                let token = value["token"]?.text,
                let created = value["created"]?.integer.flatMap({ UInt64(exactly: $0) })
            else { return nil }
            self.init(id: id, platform: platform, token: token, created: created)
        }
    }

    // MARK: - Keys

    static func deviceKey(_ identity: IdentityID, _ device: DeviceID) -> [UInt8] {
        devicesPrefix(identity) + Array(device.text.utf8)
    }

    static func devicesPrefix(_ identity: IdentityID) -> [UInt8] {
        Array(identity.text.utf8) + [0]
    }

    static func subscriptionKey(_ storeName: String, _ device: DeviceID) -> [UInt8] {
        subscriptionsPrefix(storeName) + Array(device.text.utf8)
    }

    static func subscriptionsPrefix(_ storeName: String) -> [UInt8] {
        Array(storeName.utf8) + [0]
    }

    static func noticesPrefix(_ pool: PoolID, _ identity: IdentityID) -> [UInt8] {
        Array(pool.text.utf8) + [0] + Array(identity.text.utf8) + [0]
    }

    static func noticesPrefix(
        _ pool: PoolID, _ identity: IdentityID, _ device: DeviceID
    ) -> [UInt8] {
        noticesPrefix(pool, identity) + Array(device.text.utf8) + [0]
    }

    static func noticeKey(
        _ pool: PoolID, _ identity: IdentityID, _ device: DeviceID, _ storeName: String
    ) -> [UInt8] {
        noticesPrefix(pool, identity, device) + Array(storeName.utf8)
    }

    // MARK: - Reading

    /// nil if it is not registered, or its record is not of its form.
    static func device(
        _ id: DeviceID, of identity: IdentityID, in store: Store
    ) throws(StoreError) -> Device? {
        let key = deviceKey(identity, id)
        guard let bytes = try store.existingDataset(devicesName)?.get(key) else { return nil }
        return Device(id: id, encoded: bytes)
    }

    /// All of an identity, the oldest first. O(n).
    static func devices(
        of identity: IdentityID, in store: Store
    ) throws(StoreError) -> [Device] {
        guard let dataset = try store.existingDataset(devicesName) else { return [] }
        let prefix = devicesPrefix(identity)
        let cursor = try dataset.records(in: .prefix(prefix))
        var devices: [Device] = []
        while let record = try cursor.next() {
            guard let id = deviceID(record.key[prefix.count...]), let value = record.value,
                let device = Device(id: id, encoded: value)
            else { continue }
            devices.append(device)
        }
        return devices.sorted { ($0.created, $0.id.text) < ($1.created, $1.id.text) }
    }

    /// Who wants to hear of a dataset. O(answer).
    static func subscribers(
        of storeName: String, in store: Store
    ) throws(StoreError) -> [DeviceID] {
        guard let dataset = try store.existingDataset(subscriptionsName) else { return [] }
        let prefix = subscriptionsPrefix(storeName)
        let cursor = try dataset.keys(in: .prefix(prefix))
        var devices: [DeviceID] = []
        while let key = try cursor.next() {
            if let id = deviceID(key[prefix.count...]) { devices.append(id) }
        }
        return devices
    }

    /// What a device of an identity wants to hear of, by the names of the store. Walks through all
    /// subscriptions of the identity.
    static func subscriptions(
        of device: DeviceID, _ identity: IdentityID, in store: Store
    ) throws(StoreError) -> [String] {
        guard let dataset = try store.existingDataset(subscriptionsName) else { return [] }
        let cursor = try dataset.keys(in: .prefix(StoreNames.prefix(of: identity)))
        let wanted = [0] + Array(device.text.utf8)
        var names: [String] = []
        while let key = try cursor.next() {
            guard let end = key.firstIndex(of: 0), key[end...].elementsEqual(wanted),
                let name = String(validating: key[..<end], as: UTF8.self)
            else { continue }
            names.append(name)
        }
        return names
    }

    static func subscription(told count: UInt64) -> [UInt8] {
        let told = JSONValue.number(JSONNumber(Int(clamping: count)))
        return JSONValue.object(JSONObject([("told", told)])).encoded
    }

    /// The sync count told last; 0 if it is not in its form.
    static func told(_ subscription: [UInt8]) -> UInt64 {
        let value = try? JSONValue(parsing: subscription)
        return value?["told"]?.integer.flatMap { UInt64(exactly: $0) } ?? 0
    }

    // MARK: - Writing

    /// Has a batch forget a device with all that it wants to hear of.
    static func forget(
        _ device: DeviceID, of identity: IdentityID, _ pool: PoolID, in store: Store,
        _ batch: inout WriteBatch
    ) throws(StoreError) {
        if let dataset = try store.existingDataset(devicesName) {
            batch.delete(deviceKey(identity, device), in: dataset)
        }
        let notices = try store.existingDataset(noticesName)
        guard let dataset = try store.existingDataset(subscriptionsName) else { return }
        for name in try subscriptions(of: device, identity, in: store) {
            batch.delete(subscriptionKey(name, device), in: dataset)
            let key = noticeKey(pool, identity, device, name)
            if let notices, try notices.contains(key) { batch.delete(key, in: notices) }
        }
    }

    static func deviceID(_ bytes: ArraySlice<UInt8>) -> DeviceID? {
        String(validating: bytes, as: UTF8.self).flatMap { DeviceID($0) }
    }
}
