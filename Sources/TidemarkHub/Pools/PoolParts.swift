import AsyncHTTPClient
import Logging
import ServiceLifecycle
import Tidemark
import TidemarkSync

/// What pools have beside their datasets, put together: configuration, triggers and strategies,
/// streams, and push.
///
/// ``run()`` delivers what waits, until the task is cancelled or the hub shuts down; all else
/// answers as soon as this is made. It is to be run while `threads` are, and the store is open.
struct PoolParts: Service {
    let book: PoolBook
    /// For `SyncAPI`.
    let operations: PoolOperations
    let devices: DeviceOperations
    /// For UpdateRecords.
    let trigger: PoolTrigger
    let resolver: StrategyResolver
    /// For UpdateRecords, and for what replicas push.
    let sink: PoolSink
    /// For `GET /v1/push`.
    let events: EventStream
    let connected: ConnectedDevices

    private let bulk: BulkPublisher
    private let streams: [DeliveryLoop<StreamSource>]
    private let notices: [DeliveryLoop<NoticeSource>]
    private let clock: any SyncEnvironment

    /// - Parameters:
    ///   - behaviors: of all pools that there are.
    ///   - region: of the API, as triggers are told it.
    ///   - connectionsMax: devices that listen at a time.
    /// - Throws: if the configuration of a pool cannot be read.
    init(
        behaviors: [PoolID: PoolBehavior], region: String, limits: HubLimits, threads: HubThreads,
        directory: any PoolDirectory, connectionsMax: Int = 10_000, clock: any SyncEnvironment,
        logger: Logger
    ) throws(StoreError) {
        let book = try PoolBook(threads.stores.current, behaviors: behaviors)
        let (pushes, meter) = (OpenPushes(), OutboxMeter())
        // Twice, since the one before may still be on its way out when a device comes again.
        let (perIdentity, isTooMany) = max(1, limits.devicesPerIdentityMax)
            .multipliedReportingOverflow(by: 2)
        let connected = ConnectedDevices(
            connectionsMax: connectionsMax,
            connectionsPerIdentityMax: isTooMany ? .max : perIdentity)
        var streams: [PoolID: DeliveryLoop<StreamSource>] = [:]
        var notices: [PoolID: DeliveryLoop<NoticeSource>] = [:]
        for (pool, behavior) in behaviors {
            if behavior.stream != nil {
                streams[pool] = DeliveryLoop(
                    StreamSource(
                        pool: pool, book: book, threads: threads, pushes: pushes, meter: meter,
                        clock: clock),
                    name: "the stream of \(pool)", clock: clock, logger: logger)
            }
            if behavior.gateway != nil {
                notices[pool] = DeliveryLoop(
                    NoticeSource(
                        pool: pool, book: book, threads: threads, pushes: pushes, clock: clock),
                    name: "the push gateway of \(pool)", clock: clock, logger: logger)
            }
        }
        let loops = streams
        let bulk = BulkPublisher(
            book: book, threads: threads, directory: directory, meter: meter, clock: clock,
            logger: logger,
            wake: { pool, dataset in loops[pool]?.wake(dataset) })
        self.book = book
        self.bulk = bulk
        self.connected = connected
        self.clock = clock
        self.streams = Array(streams.values)
        self.notices = Array(notices.values)
        operations = PoolOperations(book: book, threads: threads, bulk: bulk)
        devices = DeviceOperations(
            threads: threads, limits: limits, pools: book, connected: connected, clock: clock)
        trigger = PoolTrigger(book: book, region: region, clock: clock)
        resolver = StrategyResolver(book: book, clock: clock)
        sink = PoolSink(
            book: book, threads: threads, directory: directory, connected: connected,
            pushes: pushes, meter: meter, clock: clock, streams: streams, notices: notices,
            logger: logger)
        events = EventStream(threads: threads, pools: book, connected: connected, clock: clock)
    }

    /// For the settings' pools, and what the embedding process adds to them.
    ///
    /// - Parameters:
    ///   - pools: checked.
    ///   - http: must not follow redirects.
    static func behaviors(
        of pools: [PoolSettings], _ extensions: HubExtensions, http: HTTPClient,
        clock: any SyncEnvironment, logger: Logger
    ) -> [PoolID: PoolBehavior] {
        var behaviors: [PoolID: PoolBehavior] = [:]
        for pool in pools {
            guard let id = PoolID(pool.id) else { continue }
            behaviors[id] = PoolBehavior(
                pool, extensions, http: http, clock: clock, logger: logger)
        }
        return behaviors
    }

    /// Returns when the task is cancelled or the hub shuts down. What is being delivered then is
    /// given up, and comes again when the hub is started anew.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            await self.deliver()
        }
        // Whoever listens comes again, and is told all counts then.
        connected.closeAll()
    }

    private func deliver() async {
        await withDiscardingTaskGroup { group in
            for loop in streams {
                group.addTask { await loop.run() }
            }
            for loop in notices {
                group.addTask { await loop.run() }
            }
            let (bulk, sink) = (bulk, sink)
            group.addTask { await bulk.run() }
            group.addTask {
                for await _ in sink.overflows { await sink.turnOffFull() }
            }
            group.addTask { await self.beat() }
        }
    }

    /// After so many looks at those who listen, the disk is looked at too: once a minute.
    private static let ticksPerLook = 12

    /// Looks at those who listen now and then, until the task is cancelled.
    private func beat() async {
        var ticks = 0
        while true {
            do throws(CancellationError) {
                try await clock.sleep(for: EventStream.tick)
            } catch {
                return
            }
            ticks += 1
            let isBeat = ticks.isMultiple(of: EventStream.ticksPerBeat)
            connected.tick(now: clock.now(), isBeat: isBeat)
            guard ticks.isMultiple(of: Self.ticksPerLook) else { continue }
            for loop in streams { loop.lookAgain() }
            for loop in notices { loop.lookAgain() }
        }
    }

    /// Changes that wait for a stream at this moment, as far as they are in memory. For metrics.
    var waitingLaneCount: Int {
        streams.reduce(0) { $0 + $1.laneCount } + notices.reduce(0) { $0 + $1.laneCount }
    }
}
