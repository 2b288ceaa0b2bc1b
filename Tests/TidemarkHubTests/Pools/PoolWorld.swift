import Logging
import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// A stream that keeps what it is given, and fails when it is told to.
final class RecordingTarget: StreamTarget {
    struct Delivery: Hashable, Sendable {
        let name: String
        let document: JSONValue

        var dataset: String? { document["dataSetName"]?.text }
        var count: Int? { document["syncCount"]?.integer }

        /// Keys and values in their order; nil for what was removed.
        var records: [[String?]] {
            (document["kinesisSyncRecords"]?.elements ?? []).map { record in
                [record["key"]?.text, record["value"]?.text]
            }
        }
    }

    struct Refused: Error {}

    private struct State {
        var deliveries: [Delivery] = []
        var failuresLeft = 0
    }

    private let state = Mutex(State())

    var deliveries: [Delivery] { state.withLock { $0.deliveries } }

    func fail(_ count: Int) {
        state.withLock { $0.failuresLeft = count }
    }

    func deliver(_ document: [UInt8], delivery: String) async throws {
        let value = try JSONValue(parsing: document)
        let isRefused = state.withLock { state in
            guard state.failuresLeft == 0 else {
                state.failuresLeft -= 1
                return true
            }
            state.deliveries.append(Delivery(name: delivery, document: value))
            return false
        }
        if isRefused { throw Refused() }
    }
}

/// A gateway of the same kind.
final class RecordingGateway: PushGateway {
    private struct State {
        var notices: [PushNotice] = []
        var failuresLeft = 0
        var gone: Set<String> = []
        var refused: Set<String> = []
    }

    private let state = Mutex(State())

    var notices: [PushNotice] { state.withLock { $0.notices } }

    func fail(_ count: Int) {
        state.withLock { $0.failuresLeft = count }
    }

    func forget(_ device: DeviceID) {
        state.withLock { _ = $0.gone.insert(device.text) }
    }

    /// Never takes what is for a device.
    func refuse(_ device: DeviceID) {
        state.withLock { _ = $0.refused.insert(device.text) }
    }

    func deliver(_ notice: PushNotice) async throws {
        let (isRefused, isGone) = state.withLock { state -> (Bool, Bool) in
            if state.gone.contains(notice.deviceID) { return (false, true) }
            if state.refused.contains(notice.deviceID) { return (true, false) }
            guard state.failuresLeft == 0 else {
                state.failuresLeft -= 1
                return (true, false)
            }
            state.notices.append(notice)
            return (false, false)
        }
        if isGone { throw PushDeviceGone() }
        if isRefused { throw RecordingTarget.Refused() }
    }
}

/// Who is of which pool.
struct KnownIdentities: PoolDirectory {
    var pools: [IdentityID: PoolID]

    func pool(of identity: IdentityID, in store: Store) throws(StoreError) -> PoolID? {
        pools[identity]
    }

    func identityIDs(
        of pool: PoolID, after identity: IdentityID?, limit: Int, in store: Store
    ) throws(StoreError) -> [IdentityID] {
        let all = pools.filter { $0.value == pool }.keys.sorted { $0.text < $1.text }
        return Array(all.filter { $0.text > identity?.text ?? "" }.prefix(limit))
    }
}

/// The parts of a hub that pools are made of, over a store, and a clock that stands still.
final class PoolWorld: Sendable {
    let pool: PoolID
    let alice: IdentityID
    let bob: IdentityID
    let store: Store
    let threads: HubThreads
    let clock: VirtualEnvironment
    let parts: PoolParts
    let target = RecordingTarget()
    let gateway = RecordingGateway()

    /// - Parameter change: of what the settings have the pool do.
    init(
        _ store: Store, clock: VirtualEnvironment = VirtualEnvironment(),
        limits: HubLimits = HubLimits(), change: (inout PoolBehavior) -> Void = { _ in }
    ) throws {
        pool = try #require(PoolID("us-east-1:00000000-0000-4000-8000-000000000001"))
        alice = try #require(IdentityID("us-east-1:a0000000-0000-4000-8000-000000000000"))
        bob = try #require(IdentityID("us-east-1:b0000000-0000-4000-8000-000000000000"))
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        self.store = store
        self.clock = clock
        threads = HubThreads(
            stores: StoreHolder(store), readers: 2, writers: 2, callsMax: 1_000, logger: logger)
        threads.start()
        var behavior = PoolBehavior()
        behavior.stream = target
        behavior.gateway = gateway
        change(&behavior)
        parts = try PoolParts(
            behaviors: [pool: behavior], region: "us-east-1", limits: limits, threads: threads,
            directory: KnownIdentities(pools: [alice: pool, bob: pool]), clock: clock,
            logger: logger)
    }

    /// Runs what delivers while the body runs; then nothing of it runs any more.
    func whileDelivering(_ body: @escaping @Sendable () async throws -> Void) async throws {
        let parts = parts
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await parts.run()
                return false
            }
            group.addTask {
                try await body()
                return true
            }
            while let isBody = try await group.next() {
                if isBody { group.cancelAll() }
            }
        }
    }

    deinit {
        // Of a test that failed before its end: threads that nobody has shut down stop the process.
        let threads = threads
        Task { try? await threads.shutdown() }
    }

    func end() async throws {
        try await threads.shutdown()
        try store.close()
    }

    // MARK: - Requests

    var developer: Principal { .developer(keyID: "key", pools: nil) }

    /// What the API answers.
    func answer(
        _ method: String, _ path: String, _ body: String = ""
    ) async throws -> JSONValue {
        let route = try SyncRoute(method: method, path: path)
        let request = SigV4Request(method: method, path: path, query: "", headers: [])
        let call = SyncCall(
            route: route, query: try SyncQuery(request), body: Array(body.utf8),
            principal: developer, clientContext: nil, requestID: "test")
        let handlers: [any SyncOperationHandler] = [parts.operations, parts.devices]
        let handler = try #require(
            handlers.first(where: { $0.operations.contains(route.operation) }))
        return try JSONValue(parsing: try await handler.answer(call))
    }

    /// Why the API refuses; nil if it does not.
    func refusal(
        _ method: String, _ path: String, _ body: String = ""
    ) async throws -> APIFailure.Kind? {
        do {
            _ = try await answer(method, path, body)
            return nil
        } catch let failure as APIFailure {
            return failure.kind
        }
    }

    var poolPath: String { "/identitypools/\(pool)" }

    func configure(_ body: String) async throws {
        _ = try await answer("POST", "\(poolPath)/configuration", body)
    }

    func turnOnStream() async throws {
        try await configure(
            #"{"CognitoStreams": {"StreamName": "notes", "StreamingStatus": "ENABLED"}}"#)
    }

    func turnOnPush() async throws {
        try await configure(
            #"{"PushSync": {"ApplicationArns": ["arn:aws:sns:us-east-1:1:app/GCM/notes"]}}"#)
    }

    /// Registers a device of an identity.
    func device(_ token: String, of identity: IdentityID) async throws -> DeviceID {
        let answer = try await answer(
            "POST", "\(poolPath)/identity/\(identity)/device",
            #"{"Platform": "GCM", "Token": "\#(token)"}"#)
        return try #require(answer["DeviceId"]?.text.flatMap { DeviceID($0) })
    }

    func subscriptionPath(
        _ device: DeviceID, _ dataset: String, of identity: IdentityID
    ) -> String {
        "\(poolPath)/identities/\(identity)/datasets/\(dataset)/subscriptions/\(device)"
    }

    func subscribe(
        _ device: DeviceID, to dataset: String, of identity: IdentityID
    ) async throws {
        _ = try await answer("POST", subscriptionPath(device, dataset, of: identity))
    }

    // MARK: - Changes

    func context(
        _ dataset: String, of identity: IdentityID, device: DeviceID? = nil
    ) throws -> UpdateContext {
        UpdateContext(
            pool: pool, identity: identity, dataset: try #require(APIDatasetName(dataset)),
            deviceID: device,
            principal: .identity(identity, pool: pool, isAuthenticated: false))
    }

    /// What UpdateRecords does with the sink. Returns the dataset's count.
    @discardableResult
    func update(
        _ dataset: String, of identity: IdentityID, _ values: [String: String?],
        device: DeviceID? = nil
    ) async throws -> UInt64 {
        let context = try context(dataset, of: identity, device: device)
        let sink = parts.sink
        let count = try await threads.write { store -> UInt64 in
            let dataset = try store.dataset(context.storeName)
            let start = try dataset.syncCount
            var batch = WriteBatch()
            var changes: [AppliedChange] = []
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                if let value {
                    batch.put(value, for: key, in: dataset)
                } else {
                    batch.delete(key, in: dataset)
                }
                changes.append(
                    AppliedChange(
                        key: key, value: value,
                        position: start.rawValue + UInt64(changes.count) + 1,
                        deviceMilliseconds: 7))
            }
            var map = try DatasetCount.map(of: context.storeName, in: store)
            let count = map.count(at: start.rawValue) + 1
            map.noteCall(after: start.rawValue, size: UInt64(changes.count))
            batch.put(
                map.encoded, for: Array(context.storeName.utf8) + [0, 0],
                in: try store.dataset("hub:sheets"))
            try sink.append(to: &batch, changes, count: count, context)
            try store.write(batch, expecting: [(dataset: dataset, count: start)])
            return count
        }
        sink.committed(count: count, context)
        return count
    }

    /// How many records a dataset of the hub's own has.
    func recordCount(of dataset: String) throws -> Int {
        try store.existingDataset(dataset)?.count() ?? 0
    }
}
