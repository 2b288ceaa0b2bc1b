import Tidemark
import TidemarkSync

/// Notices of a pool that wait for its gateway. Each device is a lane, so that one that the gateway
/// does not take holds up no other, not even of the same identity.
struct NoticeSource: DeliverySource {
    let pool: PoolID
    let book: PoolBook
    let threads: HubThreads
    let pushes: OpenPushes
    let clock: any SyncEnvironment

    /// For one notice.
    static let limit = Duration.seconds(30)

    func lanes(limit: Int) async throws -> [String] {
        let prefix = Array(pool.text.utf8) + [0]
        return try await threads.read { store -> [String] in
            guard let notices = try store.existingDataset(DeviceBook.noticesName) else { return [] }
            return try Lanes.first(limit, in: notices, prefix: prefix, parts: 2)
                .map { $0.replacing("\0", with: Self.separator) }
        }
    }

    /// Neither identities nor devices that were registered have one in their ids.
    private static let separator = " "

    /// What a device's lane is called.
    static func lane(_ device: DeviceID, of identity: IdentityID) -> String {
        identity.text + separator + device.text
    }

    private static func parsed(_ lane: String) -> (identity: IdentityID, device: DeviceID)? {
        let parts = lane.split(separator: separator, maxSplits: 1)
        guard parts.count == 2, let identity = IdentityID(String(parts[0])),
            let device = DeviceID(String(parts[1]))
        else { return nil }
        return (identity, device)
    }

    func deliverNext(in lane: String) async throws -> Bool {
        guard let (identity, device) = Self.parsed(lane),
            let next = try await next(for: device, of: identity)
        else { return false }
        if let notice = next.notice {
            guard let gateway = book.behavior(of: pool).gateway else {
                throw NoGateway(pool: pool)
            }
            do {
                let isTaken: Void? = try await TimeLimit.run(Self.limit, clock) {
                    try await gateway.deliver(notice)
                }
                guard isTaken != nil else { throw WebhookFailure.timedOut }
            } catch is PushDeviceGone {
                try await forget(next.device, of: identity)
                return true
            }
        }
        let pool = pool
        try await threads.write { store in
            try Self.finish(next, of: identity, pool, in: store)
        }
        return true
    }

    private struct NoGateway: Error, CustomStringConvertible {
        let pool: PoolID

        var description: String {
            "the hub's settings name no push gateway for pool \(pool); name one, and start it anew"
        }
    }

    private struct Next: Sendable {
        let key: [UInt8]
        /// A later notice in its place is another one.
        let dot: Dot
        let device: DeviceID
        let storeName: String
        /// nil if there is nothing to tell any more.
        var notice: PushNotice?
    }

    private func next(for device: DeviceID, of identity: IdentityID) async throws -> Next? {
        let (pool, pushes) = (pool, pushes)
        return try await threads.read { store -> Next? in
            guard let notices = try store.existingDataset(DeviceBook.noticesName) else {
                return nil
            }
            let prefix = DeviceBook.noticesPrefix(pool, identity, device)
            let cursor = try notices.records(in: .prefix(prefix))
            while let record = try cursor.next() {
                guard var next = Self.parsed(record, prefix, device) else { continue }
                // What a replica is about to push may not be here yet.
                guard !pushes.isOpen(next.storeName) else { continue }
                next.notice = try Self.notice(next, of: identity, pool, in: store)
                return next
            }
            return nil
        }
    }

    private static func parsed(
        _ record: Record, _ prefix: [UInt8], _ device: DeviceID
    ) -> Next? {
        guard let name = String(validating: record.key[prefix.count...], as: UTF8.self) else {
            return nil
        }
        return Next(key: record.key, dot: record.version.dot, device: device, storeName: name)
    }

    /// What is to be told, by what the dataset is now; nil if that was told, or the device does not
    /// want to hear of it any more.
    private static func notice(
        _ next: Next, of identity: IdentityID, _ pool: PoolID, in store: Store
    ) throws(StoreError) -> PushNotice? {
        let key = DeviceBook.subscriptionKey(next.storeName, next.device)
        guard let name = StoreNames.apiName(of: next.storeName, identity),
            let device = try DeviceBook.device(next.device, of: identity, in: store),
            let stored = try store.existingDataset(DeviceBook.subscriptionsName)?.get(key)
        else { return nil }
        let count = try DatasetCount.current(of: next.storeName, in: store)
        guard count > DeviceBook.told(stored) else { return nil }
        return PushNotice(
            identityPoolID: pool.text, identityID: identity.text, datasetName: name.text,
            syncCount: count, deviceID: device.id.text, platform: device.platform.rawValue,
            token: device.token)
    }

    /// Forgets a notice that was taken, unless a later one has taken its place, and notes what was
    /// told.
    private static func finish(
        _ next: Next, of identity: IdentityID, _ pool: PoolID, in store: Store
    ) throws(StoreError) {
        let notices = try store.dataset(DeviceBook.noticesName)
        var batch = WriteBatch()
        batch.delete(next.key, in: notices, ifAt: next.dot)
        let key = DeviceBook.subscriptionKey(next.storeName, next.device)
        if let notice = next.notice,
            let subscriptions = try store.existingDataset(DeviceBook.subscriptionsName),
            let stored = try subscriptions.record(for: key)
        {
            batch.put(
                DeviceBook.subscription(told: notice.syncCount), for: key, in: subscriptions,
                ifAt: stored.version.dot)
        }
        do throws(StoreError) {
            try store.write(batch, durability: .process)
        } catch {
            // It is looked at again.
            guard error.code == .versionMismatch else { throw error }
        }
    }

    private func forget(_ device: DeviceID, of identity: IdentityID) async throws {
        let pool = pool
        try await threads.write { store in
            var batch = WriteBatch()
            try DeviceBook.forget(device, of: identity, pool, in: store, &batch)
            try store.write(batch)
        }
    }
}
