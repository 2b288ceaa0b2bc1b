import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// RegisterDevice, SubscribeToDataset and UnsubscribeFromDataset.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct DeviceTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test("a pool without push has no devices")
    func withoutPush() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let path = "\(world.poolPath)/identity/\(world.alice)/device"
        let body = #"{"Platform": "GCM", "Token": "t"}"#
        #expect(try await world.refusal("POST", path, body) == .invalidConfiguration)
        let device = try #require(DeviceID("d"))
        let subscription = world.subscriptionPath(device, "notes", of: world.alice)
        #expect(try await world.refusal("POST", subscription) == .invalidConfiguration)
        #expect(try await world.refusal("DELETE", subscription) == .invalidConfiguration)
        try await world.end()
    }

    @Test(
        "what is out of shape is refused",
        arguments: [
            #"{"Token": "t"}"#, #"{"Platform": "GCM"}"#, #"{"Platform": "SDM", "Token": "t"}"#,
            #"{"Platform": "GCM", "Token": ""}"#, "",
        ])
    func shapes(_ body: String) async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let path = "\(world.poolPath)/identity/\(world.alice)/device"
        #expect(try await world.refusal("POST", path, body) == .invalidParameter)
        try await world.end()
    }

    @Test("a platform that the pool has no application for is refused")
    func platform() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let path = "\(world.poolPath)/identity/\(world.alice)/device"
        let body = #"{"Platform": "APNS", "Token": "t"}"#
        #expect(try await world.refusal("POST", path, body) == .invalidConfiguration)
        try await world.end()
    }

    @Test("the same device is registered once, another identity's is another one")
    func identifiers() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let device = try await world.device("t", of: world.alice)
        #expect(device.text.utf8.count == 64)
        #expect(try await world.device("t", of: world.alice) == device)
        #expect(try await world.device("u", of: world.alice) != device)
        #expect(try await world.device("t", of: world.bob) != device)
        #expect(try DeviceBook.devices(of: world.alice, in: world.store).count == 2)
        let other = try #require(DeviceBook.Device.id(of: world.alice, .adm, token: "t"))
        #expect(other != device)
        try await world.end()
    }

    @Test("no id of a device looks like an option of a command line", arguments: 0..<256)
    func idsOnCommandLines(token: Int) throws {
        let identity = try #require(IdentityID("us-east-1:0000-2"))
        let id = try #require(DeviceBook.Device.id(of: identity, .gcm, token: "\(token)"))
        #expect(!id.text.hasPrefix("-"))
    }

    @Test("the oldest devices give way to new ones, with all that they wanted to hear of")
    func oldest() async throws {
        var limits = HubLimits()
        limits.devicesPerIdentityMax = 2
        let clock = VirtualEnvironment()
        let world = try PoolWorld(try directory.store("hub"), clock: clock, limits: limits)
        try await world.turnOnPush()
        try await world.update("notes", of: world.alice, ["a": "1"])
        var devices: [DeviceID] = []
        for number in 0..<3 {
            clock.advance(by: .seconds(1))
            devices.append(try await world.device("\(number)", of: world.alice))
            if number == 0 { try await world.subscribe(devices[0], to: "notes", of: world.alice) }
        }
        let kept = try DeviceBook.devices(of: world.alice, in: world.store).map(\.id)
        #expect(kept == Array(devices[1...]))
        let storeName = "\(world.alice):notes"
        #expect(try DeviceBook.subscribers(of: storeName, in: world.store).isEmpty)
        try await world.end()
    }

    @Test("subscriptions are of datasets and devices that are there, and end once")
    func subscriptions() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let device = try await world.device("t", of: world.alice)
        let path = world.subscriptionPath(device, "notes", of: world.alice)
        #expect(try await world.refusal("POST", path) == .resourceNotFound)
        try await world.update("notes", of: world.alice, ["a": "1"])
        #expect(try await world.refusal("DELETE", path) == .resourceNotFound)
        #expect(try await world.answer("POST", path) == [:])
        #expect(try await world.answer("POST", path, "{}") == [:])
        let storeName = "\(world.alice):notes"
        #expect(try DeviceBook.subscribers(of: storeName, in: world.store) == [device])
        #expect(
            try DeviceBook.subscriptions(of: device, world.alice, in: world.store) == [storeName])
        #expect(try await world.answer("DELETE", path) == [:])
        #expect(try await world.refusal("DELETE", path) == .resourceNotFound)
        let foreign = try await world.device("t", of: world.bob)
        let foreignPath = world.subscriptionPath(foreign, "notes", of: world.alice)
        #expect(try await world.refusal("POST", foreignPath) == .resourceNotFound)
        try await world.end()
    }

    @Test("what changes while a device that listens subscribes is told to it")
    func subscribingWhileListening() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        try await world.update("notes", of: world.alice, ["a": "1"])
        let device = try await world.device("t", of: world.alice)
        let other = try await world.device("u", of: world.alice)
        var connections: [DeviceConnection] = []
        for id in [device, other] {
            let connection = DeviceConnection(
                device: id, identity: world.alice, pool: world.pool, endsAt: .max)
            #expect(world.parts.connected.open(connection))
            connection.begin([:])
            connections.append(connection)
        }
        // As between the subscription's write and the moment when the connection knows of it.
        let key = DeviceBook.subscriptionKey("\(world.alice):notes", device)
        try world.store.dataset(DeviceBook.subscriptionsName)
            .put(DeviceBook.subscription(told: 1), for: key)
        try await world.update("notes", of: world.alice, ["a": "2"])
        #expect(connections[0].take().counts.isEmpty)
        let told = DeviceConnection.News.Count(dataset: "notes", count: 2)
        try await world.subscribe(device, to: "notes", of: world.alice)
        #expect(connections[0].take().counts == [told])
        #expect(connections[1].take().counts.isEmpty)
        try await world.end()
    }

    @Test("a dataset has so many subscriptions and no more")
    func limit() async throws {
        var limits = HubLimits()
        limits.subscriptionsPerDatasetMax = 2
        let world = try PoolWorld(try directory.store("hub"), limits: limits)
        try await world.turnOnPush()
        try await world.update("notes", of: world.alice, ["a": "1"])
        var paths: [String] = []
        for number in 0..<3 {
            let device = try await world.device("\(number)", of: world.alice)
            paths.append(world.subscriptionPath(device, "notes", of: world.alice))
        }
        #expect(try await world.refusal("POST", paths[0]) == nil)
        #expect(try await world.refusal("POST", paths[1]) == nil)
        #expect(try await world.refusal("POST", paths[2]) == .limitExceeded)
        // Who has one already loses nothing.
        #expect(try await world.refusal("POST", paths[1]) == nil)
        try await world.end()
    }

    @Test("what is stored of a device is read again")
    func coding() throws {
        let id = try #require(DeviceID("d"))
        let device = DeviceBook.Device(
            id: id, platform: .apnsSandbox, token: "t\"\n", created: 1_700_000_000_000)
        #expect(DeviceBook.Device(id: id, encoded: device.encoded) == device)
        #expect(DeviceBook.Device(id: id, encoded: Array(#"{"platform":"GCM"}"#.utf8)) == nil)
        #expect(DeviceBook.told(DeviceBook.subscription(told: 7)) == 7)
        #expect(DeviceBook.told([0xFF]) == 0)
    }
}
