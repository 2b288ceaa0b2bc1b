import Logging
import Synchronization
import Tidemark
import TidemarkSync

/// Passes on what changes in pools: to their streams, to the gateways of their devices, and to the
/// devices that listen.
///
/// What must not be lost with a change is in its batch. What replicas push is noted before they do,
/// in a batch of its own: the log is durable in its order, so after a crash there is a note
/// wherever there is a change.
final class PoolSink: ChangeSink {
    /// Identities whose pool is known.
    private static let poolsKnownMax = 65_536

    private let book: PoolBook
    private let threads: HubThreads
    private let directory: any PoolDirectory
    private let connected: ConnectedDevices
    private let pushes: OpenPushes
    private let meter: OutboxMeter
    private let clock: any SyncEnvironment
    private let streams: [PoolID: DeliveryLoop<StreamSource>]
    private let notices: [PoolID: DeliveryLoop<NoticeSource>]
    private let logger: Logger
    private let pools = Mutex<[IdentityID: PoolID]>([:])
    /// Pools for whose streams too much waits, until that is in their configuration.
    private let full = Mutex<Set<PoolID>>([])
    /// Says that there is one.
    let overflows: AsyncStream<Void>
    private let overflow: AsyncStream<Void>.Continuation

    init(
        book: PoolBook, threads: HubThreads, directory: any PoolDirectory,
        connected: ConnectedDevices, pushes: OpenPushes, meter: OutboxMeter,
        clock: any SyncEnvironment, streams: [PoolID: DeliveryLoop<StreamSource>],
        notices: [PoolID: DeliveryLoop<NoticeSource>], logger: Logger
    ) {
        self.book = book
        self.threads = threads
        self.directory = directory
        self.connected = connected
        self.pushes = pushes
        self.meter = meter
        self.clock = clock
        self.streams = streams
        self.notices = notices
        self.logger = logger
        (overflows, overflow) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: - Updates through the API

    func append(
        to batch: inout WriteBatch, _ changes: [AppliedChange], count: UInt64,
        _ context: UpdateContext
    ) throws(StoreError) {
        guard let position = changes.first?.position else { return }
        let store = threads.stores.current
        if book.stream(of: context.pool) != nil {
            let key = Outbox.Key(context.pool, context.storeName, position: position, .update)
            let document = document(of: changes, count, context)
            let bytes = key.bytes.count + document.count
            if try hasRoom(for: bytes, of: context.pool, in: store) {
                batch.put(document, for: key.bytes, in: try store.dataset(Outbox.datasetName))
                meter.add(bytes, of: context.pool)
            }
        }
        if book.gateway(of: context.pool) != nil {
            try noteDevices(
                of: context.storeName, context.identity, context.pool, count: count,
                except: context.deviceID, in: store, &batch)
        }
    }

    func committed(count: UInt64, _ context: UpdateContext) {
        connected.tell(context.identity, context.dataset, count: count, except: context.deviceID)
        wake(context.pool, context.identity, context.storeName)
    }

    /// Nothing is looked at for pools that have nothing on. A stream that was turned off in this
    /// moment has what was taken in before.
    private func wake(_ pool: PoolID, _ identity: IdentityID, _ storeName: String) {
        if book.stream(of: pool) != nil || meter.bytes(of: pool) > 0 {
            streams[pool]?.wake(storeName)
        }
        guard book.gateway(of: pool) != nil, let loop = notices[pool] else { return }
        // If it cannot be read, whoever looks at all that waits finds it.
        let devices = try? DeviceBook.subscribers(of: storeName, in: threads.stores.current)
        for device in devices ?? [] { loop.wake(NoticeSource.lane(device, of: identity)) }
    }

    private func document(
        of changes: [AppliedChange], _ count: UInt64, _ context: UpdateContext
    ) -> [UInt8] {
        let now = clock.now()
        return StreamDocument.encoded(
            changes.map { change in
                StreamDocument.Change(
                    key: change.key, value: change.value, count: count, modifiedMilliseconds: now,
                    deviceMilliseconds: change.deviceMilliseconds)
            },
            pool: context.pool, identity: context.identity, dataset: context.dataset,
            count: count, modifiedMilliseconds: now)
    }

    /// - Parameter writer: is not told of its own change.
    private func noteDevices(
        of storeName: String, _ identity: IdentityID, _ pool: PoolID, count: UInt64,
        except writer: DeviceID?, in store: Store, _ batch: inout WriteBatch
    ) throws(StoreError) {
        let devices = try DeviceBook.subscribers(of: storeName, in: store)
            .filter { $0 != writer }
        guard !devices.isEmpty else { return }
        let dataset = try store.dataset(DeviceBook.noticesName)
        for device in devices {
            batch.put(
                Array(String(count).utf8),
                for: DeviceBook.noticeKey(pool, identity, device, storeName), in: dataset)
        }
    }

    // MARK: - Too much

    /// The stream is turned off before there is no room, so that this is on disk before anything
    /// is left out: else a crash in between would leave a stream that is on and lacks changes.
    private func hasRoom(
        for bytes: Int, of pool: PoolID, in store: Store
    ) throws(StoreError) -> Bool {
        let bytesMax = book.behavior(of: pool).streamBytesMax
        let isEnough = { self.meter.bytes(of: pool) + bytes <= bytesMax / 4 * 3 }
        if isEnough() { return true }
        if !full.withLock({ $0.contains(pool) }) {
            // What is counted may be too high.
            meter.set(try Outbox.size(of: pool, in: store), of: pool)
            if isEnough() { return true }
            full.withLock { _ = $0.insert(pool) }
            overflow.yield()
        }
        return meter.bytes(of: pool) + bytes <= bytesMax
    }

    /// Turns the streams off for which too much waits: from then on they lack changes, and whoever
    /// turns them on again has the pool published to make up for it.
    func turnOffFull() async {
        for pool in full.withLock({ $0 }) {
            let book = book
            do throws(APIFailure) {
                _ = try await threads.write { store in
                    try book.update(pool, in: store) { $0.stream?.isEnabled = false }
                }
            } catch {
                logger.error(
                    "a stream for which too much waits cannot be turned off",
                    metadata: ["pool": "\(pool)", "error": "\(error.message)"])
                try? await clock.sleep(for: .seconds(1))
                overflow.yield()
                continue
            }
            full.withLock { _ = $0.remove(pool) }
            logger.error(
                """
                a stream was turned off, because too much waits for it; see to its receiver, turn \
                it on, and publish the pool
                """,
                metadata: [
                    "pool": "\(pool)",
                    "bytesMax": "\(book.behavior(of: pool).streamBytesMax)",
                ])
        }
    }

    // MARK: - Native pushes

    func willChange(_ storeNames: [String]) throws(StoreError) {
        let store = threads.stores.current
        pushes.open(storeNames)
        do throws(StoreError) {
            try note(storeNames, in: store)
        } catch {
            pushes.close(storeNames)
            throw error
        }
    }

    private func note(_ storeNames: [String], in store: Store) throws(StoreError) {
        var batch = WriteBatch()
        for storeName in storeNames {
            guard let parsed = StoreNames.parsed(storeName),
                let pool = try pool(of: parsed.identity, in: store)
            else { continue }
            if book.stream(of: pool) != nil {
                let position = try DatasetCount.position(of: storeName, in: store)
                let key = Outbox.Key(pool, storeName, position: position, .span).bytes
                if try hasRoom(for: key.count, of: pool, in: store) {
                    batch.put([], for: key, in: try store.dataset(Outbox.datasetName))
                    meter.add(key.count, of: pool)
                }
            }
            if book.gateway(of: pool) != nil {
                let count = try DatasetCount.current(of: storeName, in: store)
                try noteDevices(
                    of: storeName, parsed.identity, pool, count: count, except: nil, in: store,
                    &batch)
            }
        }
        // Before the push in the log, and so durable when that is.
        try store.write(batch, durability: .process)
    }

    func didChange(_ storeNames: [String]) {
        pushes.close(storeNames)
        let store = threads.stores.current
        for storeName in storeNames {
            guard let parsed = StoreNames.parsed(storeName),
                let pool = try? pool(of: parsed.identity, in: store)
            else { continue }
            wake(pool, parsed.identity, storeName)
            guard connected.isListening(parsed.identity) else { continue }
            // Who listens is told the count when it comes again, if it cannot be read now.
            if let count = try? DatasetCount.current(of: storeName, in: store) {
                connected.tell(parsed.identity, parsed.name, count: count, except: nil)
            }
        }
    }

    /// nil if there is no such identity: then the dataset is one that has no pool.
    private func pool(
        of identity: IdentityID, in store: Store
    ) throws(StoreError) -> PoolID? {
        if let pool = pools.withLock({ $0[identity] }) { return pool }
        guard let pool = try directory.pool(of: identity, in: store) else { return nil }
        pools.withLock { pools in
            // An identity never changes its pool; all are as good to keep as any.
            if pools.count >= Self.poolsKnownMax { pools.removeAll(keepingCapacity: true) }
            pools[identity] = pool
        }
        return pool
    }
}
