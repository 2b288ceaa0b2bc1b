import Tidemark
import TidemarkSync

/// Answers the operations of push: which devices an identity has, and of which datasets they want
/// to hear.
struct DeviceOperations: SyncOperationHandler {
    let threads: HubThreads
    let limits: HubLimits
    let pools: PoolBook
    let connected: ConnectedDevices
    let clock: any SyncEnvironment

    let operations: Set<SyncOperation> = [
        .registerDevice, .subscribeToDataset, .unsubscribeFromDataset,
    ]

    /// Bytes of a device's token. Those of all platforms are shorter.
    static let tokenBytesMax = 4_096

    func answer(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let (pool, identity) = (try call.pool(), try call.identity())
        guard let record = pools.record(of: pool) else {
            throw APIFailure(.resourceNotFound, "there is no such identity pool")
        }
        guard record.hasPush else {
            throw APIFailure(
                .invalidConfiguration,
                "the pool has no push; set PushSync with SetIdentityPoolConfiguration")
        }
        switch call.route.operation {
        case .registerDevice:
            let device = try await register(ConfigurationBody(call.body), identity, pool, record)
            let answer = JSONObject([("DeviceId", JSONValue.string(device.text))])
            return JSONValue.object(answer).encoded
        case .subscribeToDataset:
            try await subscribe(
                try call.device(), identity, try call.datasetName())
        case .unsubscribeFromDataset:
            try await unsubscribe(try call.device(), identity, pool, try call.datasetName())
        default:
            throw APIFailure(.unknownOperation, "no operation has this path")
        }
        return Array("{}".utf8)
    }

    private func register(
        _ body: ConfigurationBody, _ identity: IdentityID, _ pool: PoolID, _ record: PoolRecord
    ) async throws(APIFailure) -> DeviceID {
        let name = try body.requiredText("Platform")
        guard let platform = DevicePlatform(rawValue: name) else {
            let allowed = DevicePlatform.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIFailure(.invalidParameter, "Platform must be one of \(allowed)")
        }
        let token = try body.requiredText("Token")
        guard (1...Self.tokenBytesMax).contains(token.utf8.count),
            let id = DeviceBook.Device.id(of: identity, platform, token: token)
        else {
            throw APIFailure(
                .invalidParameter, "Token must have 1...\(Self.tokenBytesMax) bytes")
        }
        guard record.hasPush(for: platform) else {
            throw APIFailure(
                .invalidConfiguration,
                "the pool has no push for \(name); add an application ARN of that platform")
        }
        let device = DeviceBook.Device(
            id: id, platform: platform, token: token, created: clock.now())
        let devicesMax = limits.devicesPerIdentityMax
        let gone = try await threads.write { store in
            try Self.add(device, to: identity, pool, devicesMax, in: store)
        }
        for device in gone { connected.close(device, of: identity) }
        return id
    }

    /// - Returns: devices that have given way.
    private static func add(
        _ device: DeviceBook.Device, to identity: IdentityID, _ pool: PoolID, _ devicesMax: Int,
        in store: Store
    ) throws(StoreError) -> [DeviceID] {
        let known = try DeviceBook.devices(of: identity, in: store)
        guard !known.contains(where: { $0.id == device.id }) else { return [] }
        let dataset = try store.dataset(DeviceBook.devicesName)
        var batch = WriteBatch()
        // The oldest first.
        let gone = known.prefix(max(0, known.count + 1 - max(1, devicesMax))).map(\.id)
        for old in gone {
            try DeviceBook.forget(old, of: identity, pool, in: store, &batch)
        }
        batch.put(device.encoded, for: DeviceBook.deviceKey(identity, device.id), in: dataset)
        try store.write(batch)
        return gone
    }

    private func subscribe(
        _ device: DeviceID, _ identity: IdentityID, _ name: APIDatasetName
    ) async throws(APIFailure) {
        let storeName = StoreNames.dataset(name, of: identity)
        let subscriptionsMax = limits.subscriptionsPerDatasetMax
        let told = try await threads.write { store -> UInt64 in
            guard try DeviceBook.device(device, of: identity, in: store) != nil else {
                throw APIFailure(.resourceNotFound, "there is no such device; register it")
            }
            guard try store.existingDataset(storeName) != nil else {
                throw APIFailure(
                    .resourceNotFound, "there is no such dataset; synchronize it, then subscribe")
            }
            let dataset = try store.dataset(DeviceBook.subscriptionsName)
            let key = DeviceBook.subscriptionKey(storeName, device)
            if let stored = try dataset.get(key) { return DeviceBook.told(stored) }
            let subscribers = try DeviceBook.subscribers(of: storeName, in: store)
            guard subscribers.count < subscriptionsMax else {
                throw APIFailure(
                    .limitExceeded,
                    "a dataset has at most \(subscriptionsMax) subscriptions; end one of them")
            }
            let count = try DatasetCount.current(of: storeName, in: store)
            try dataset.put(DeviceBook.subscription(told: count), for: key)
            return count
        }
        connected.add(name, to: device, of: identity)
        guard connected.isListening(identity) else { return }
        // What changed before the connection knew of the subscription has been told to nobody.
        let count = try await threads.read { store in
            try DatasetCount.current(of: storeName, in: store)
        }
        guard count > told else { return }
        connected.tell(device, of: identity, name, count: count)
    }

    private func unsubscribe(
        _ device: DeviceID, _ identity: IdentityID, _ pool: PoolID, _ name: APIDatasetName
    ) async throws(APIFailure) {
        let storeName = StoreNames.dataset(name, of: identity)
        try await threads.write { store in
            let key = DeviceBook.subscriptionKey(storeName, device)
            guard let dataset = try store.existingDataset(DeviceBook.subscriptionsName),
                try dataset.contains(key)
            else {
                throw APIFailure(.resourceNotFound, "the device has not subscribed to the dataset")
            }
            var batch = WriteBatch()
            batch.delete(key, in: dataset)
            let notice = DeviceBook.noticeKey(pool, identity, device, storeName)
            if let notices = try store.existingDataset(DeviceBook.noticesName),
                try notices.contains(notice)
            {
                batch.delete(notice, in: notices)
            }
            try store.write(batch)
        }
        connected.remove(name, from: device, of: identity)
    }
}
