import Tidemark
import TidemarkSync

/// Replicas that exchange datasets with the hub, and how far behind each is: dataset by dataset, a
/// bounded stretch of them for each request.
struct ReplicaList: Sendable {
    private let after: String?
    private let limit: Int

    /// - Throws: `invalidParameter`.
    init(_ query: ConsoleQuery) throws(APIFailure) {
        after = try query.datasetBefore()
        limit = try query.limit()
    }

    /// Looks at ``ConsoleLimits/scannedMax`` datasets at most.
    func answer(in store: Store) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var (rows, scanned) = (0, 0)
        var last = after
        var isCut = false
        while !isCut {
            let names = try store.datasetNames(
                prefix: "", after: last, limit: ConsoleLimits.namesAtOnce)
            for name in names {
                guard rows < limit, scanned < ConsoleLimits.scannedMax else {
                    isCut = true
                    break
                }
                scanned += 1
                last = name
                guard !ConsoleNames.isOwn(name), let dataset = try store.existingDataset(name)
                else { continue }
                rows += try Console.writePeers(of: dataset, store, to: &answer)
            }
            if names.isEmpty { break }
        }
        answer.close("]")
        if isCut, let last { answer.add("next", text: last) }
        answer.close("}")
        return answer.bytes
    }
}

extension Console {
    /// The peers of a dataset as elements of a list that is open. No record is read.
    ///
    /// - Returns: how many.
    @discardableResult
    static func writePeers(
        of dataset: Dataset, _ store: Store, to answer: inout JSONAnswer
    ) throws(StoreError) -> Int {
        var count = 0
        let reached = try dataset.knowledge().syncCount.rawValue
        // The API is in the registry so that deletions are kept for devices; it is nobody's store.
        for peer in try dataset.peerIDs() where peer != CognitoPeer.replica {
            let checkpoint = try dataset.checkpoint(for: peer)
            let pushed = checkpoint.pushedThrough.rawValue
            count += 1
            answer.open("{")
            answer.add("dataset", text: dataset.name)
            answer.add("replica", text: peer.description)
            answer.add("lag", reached - min(reached, pushed))
            answer.add("acknowledged", pushed)
            answer.add("pulledThrough", checkpoint.pulledThrough.rawValue)
            answer.add("count", reached)
            answer.close("}")
        }
        return count
    }
}

/// Registered devices, of all identities or of one.
struct DeviceList: Sendable {
    private let identity: IdentityID?
    private let after: [UInt8]?
    private let limit: Int

    /// - Throws: `invalidParameter`.
    init(_ query: ConsoleQuery) throws(APIFailure) {
        identity =
            try query.text("identity") == nil
            ? nil : ConsoleNames.identity(try query.text("identity"))
        limit = try query.limit()
        guard let text = try query.text("after") else {
            after = nil
            return
        }
        guard let key = Base64.decodedFromURL(text), !key.isEmpty else {
            throw APIFailure(.invalidParameter, "after names no device; take one of a list")
        }
        after = key
    }

    /// No token of a device is told.
    func answer(in store: Store, _ connected: ConnectedDevices) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var (rows, scanned) = (0, 0)
        var last: [UInt8]?
        var isCut = false
        if let dataset = try store.existingDataset(DeviceBook.devicesName) {
            let prefix = identity.map { KeyRange.prefix(DeviceBook.devicesPrefix($0)) } ?? .all
            let cursor = try dataset.records(
                in: KeyRange(from: after.map { $0 + [0] }).intersection(prefix))
            while let record = try cursor.next() {
                guard rows < limit, scanned < ConsoleLimits.scannedMax else {
                    isCut = true
                    break
                }
                scanned += 1
                last = record.key
                guard let found = Self.parsed(record) else { continue }
                rows += 1
                try Self.write(found.identity, found.device, store, connected, to: &answer)
            }
        }
        answer.close("]")
        if isCut, let last { answer.add("next", text: Base64.encodedForURL(last)) }
        answer.close("}")
        return answer.bytes
    }

    private static func parsed(
        _ record: Record
    ) -> (identity: IdentityID, device: DeviceBook.Device)? {
        guard let end = record.key.firstIndex(of: 0),
            let identity = String(validating: record.key[..<end], as: UTF8.self)
                .flatMap({ IdentityID($0) }),
            let id = DeviceBook.deviceID(record.key[(end + 1)...]),
            let device = record.value.flatMap({ DeviceBook.Device(id: id, encoded: $0) })
        else { return nil }
        return (identity, device)
    }

    private static func write(
        _ identity: IdentityID, _ device: DeviceBook.Device, _ store: Store,
        _ connected: ConnectedDevices, to answer: inout JSONAnswer
    ) throws(StoreError) {
        answer.open("{")
        answer.add("identity", text: identity.text)
        answer.add("device", text: device.id.text)
        answer.add("platform", text: device.platform.rawValue)
        answer.add("created", device.created)
        answer.add("isConnected", connected.isListening(identity, device.id))
        var lag: UInt64 = 0
        let names = try DeviceBook.subscriptions(of: device.id, identity, in: store)
        let subscriptions = try store.existingDataset(DeviceBook.subscriptionsName)
        for name in names {
            let key = DeviceBook.subscriptionKey(name, device.id)
            let told = try subscriptions?.get(key).map { DeviceBook.told($0) } ?? 0
            let count = try DatasetCount.current(of: name, in: store)
            lag += count - min(count, told)
        }
        answer.add("subscriptions", names.count)
        answer.add("lag", lag)
        answer.close("}")
    }
}

extension ConnectedDevices {
    /// Whether one device listens at this moment.
    func isListening(_ identity: IdentityID, _ device: DeviceID) -> Bool {
        connections(of: identity).contains { $0.device == device }
    }
}
