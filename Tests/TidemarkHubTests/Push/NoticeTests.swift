import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Notices through a gateway.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct NoticeTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A dataset of alice's with two devices that want to hear of it.
    private static func prepared(
        _ world: PoolWorld
    ) async throws -> (first: DeviceID, second: DeviceID) {
        try await world.turnOnPush()
        try await world.update("notes", of: world.alice, ["a": "1"])
        let first = try await world.device("first", of: world.alice)
        let second = try await world.device("second", of: world.alice)
        for device in [first, second] {
            try await world.subscribe(device, to: "notes", of: world.alice)
        }
        return (first, second)
    }

    private static func untilEmpty(_ world: PoolWorld) async throws {
        try await eventually("all told") {
            try world.recordCount(of: DeviceBook.noticesName) == 0
        }
    }

    @Test("other devices are told, the writer is not, nor anybody else's")
    func writer() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        _ = try await world.device("third", of: world.bob)
        try await world.update("notes", of: world.alice, ["a": "2", "b": "x"], device: first)
        try await world.whileDelivering { try await Self.untilEmpty(world) }
        let expected = PushNotice(
            identityPoolID: world.pool.text, identityID: world.alice.text, datasetName: "notes",
            syncCount: 2, deviceID: second.text, platform: "GCM", token: "second")
        #expect(world.gateway.notices == [expected])
        try await world.end()
    }

    @Test("of several changes the newest is told, however long the gateway fails")
    func newest() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        for number in 0..<30 {
            try await world.update("notes", of: world.alice, ["a": "\(number)"], device: first)
        }
        #expect(try world.recordCount(of: DeviceBook.noticesName) == 1)
        world.gateway.fail(1)
        let clock = world.clock
        try await world.whileDelivering {
            // One sleeps until it is tried again, and one until it looks at who listens.
            try await eventually("asleep") {
                clock.slept.contains(.seconds(1)) && clock.sleeperCount == 2
            }
            clock.advance(by: .seconds(1))
            try await Self.untilEmpty(world)
        }
        #expect(world.gateway.notices.map(\.syncCount) == [31])
        #expect(world.gateway.notices.map(\.deviceID) == [second.text])
        try await world.end()
    }

    @Test("a notice survives a restart")
    func restart() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        try await world.update("notes", of: world.alice, ["a": "2"], device: second)
        try await world.end()
        let again = try PoolWorld(try directory.store("hub"))
        try await again.whileDelivering { try await Self.untilEmpty(again) }
        #expect(again.gateway.notices.map(\.deviceID) == [first.text])
        try await again.end()
    }

    @Test("what was told is not told again")
    func told() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        try await world.update("notes", of: world.alice, ["a": "2"], device: second)
        try await world.whileDelivering { try await Self.untilEmpty(world) }
        // As after a crash between the delivery and its end.
        let key = DeviceBook.noticeKey(world.pool, world.alice, first, "\(world.alice):notes")
        try world.store.dataset(DeviceBook.noticesName).put(Array("2".utf8), for: key)
        #expect(world.gateway.notices.count == 1)
        try await world.end()
        let again = try PoolWorld(try directory.store("hub"))
        try await again.whileDelivering { try await Self.untilEmpty(again) }
        #expect(again.gateway.notices.isEmpty)
        try await again.end()
    }

    @Test("a device whose notices are never taken holds up no other of its identity")
    func refused() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let devices = try await Self.prepared(world)
        // Whichever comes first.
        let ordered = [devices.first, devices.second].sorted { $0.text < $1.text }
        world.gateway.refuse(ordered[0])
        try await world.update("notes", of: world.alice, ["a": "2"])
        try await world.whileDelivering {
            try await eventually("the other is told") { world.gateway.notices.count == 1 }
            // Also while the one is waited for.
            try await world.update("notes", of: world.alice, ["a": "3"])
            try await eventually("the other is told again") {
                try world.gateway.notices.count == 2
                    && world.recordCount(of: DeviceBook.noticesName) == 1
            }
        }
        #expect(world.gateway.notices.allSatisfy { $0.deviceID == ordered[1].text })
        #expect(world.gateway.notices.map(\.syncCount) == [2, 3])
        try await world.end()
    }

    @Test("a device that is gone is forgotten, and the other is told")
    func gone() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        world.gateway.forget(first)
        try await world.update("notes", of: world.alice, ["a": "2"])
        try await world.whileDelivering { try await Self.untilEmpty(world) }
        #expect(world.gateway.notices.map(\.deviceID) == [second.text])
        let devices = try DeviceBook.devices(of: world.alice, in: world.store).map(\.id)
        #expect(devices == [second])
        let storeName = "\(world.alice):notes"
        #expect(try DeviceBook.subscribers(of: storeName, in: world.store) == [second])
        try await world.end()
    }

    @Test("what a replica pushes is told to all devices")
    func native() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        let name = "\(world.alice):notes"
        try world.parts.sink.willChange([name])
        try world.store.dataset(name).put("2", for: "b")
        world.parts.sink.didChange([name])
        try await world.whileDelivering { try await Self.untilEmpty(world) }
        #expect(Set(world.gateway.notices.map(\.deviceID)) == [first.text, second.text])
        #expect(world.gateway.notices.allSatisfy { $0.syncCount == 2 })
        try await world.end()
    }

    @Test("a push that changed nothing is told to nobody")
    func nothing() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        _ = try await Self.prepared(world)
        let name = "\(world.alice):notes"
        try world.parts.sink.willChange([name])
        world.parts.sink.didChange([name])
        try await world.whileDelivering { try await Self.untilEmpty(world) }
        #expect(world.gateway.notices.isEmpty)
        try await world.end()
    }

    @Test("who has unsubscribed is told nothing more")
    func unsubscribed() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let (first, second) = try await Self.prepared(world)
        try await world.update("notes", of: world.alice, ["a": "2"])
        for device in [first, second] {
            _ = try await world.answer(
                "DELETE", world.subscriptionPath(device, "notes", of: world.alice))
        }
        #expect(try world.recordCount(of: DeviceBook.noticesName) == 0)
        try await world.update("notes", of: world.alice, ["a": "3"])
        #expect(try world.recordCount(of: DeviceBook.noticesName) == 0)
        try await world.end()
    }
}
