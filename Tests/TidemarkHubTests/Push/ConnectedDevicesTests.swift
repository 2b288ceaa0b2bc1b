import Synchronization
import TestSupport
import Testing

@testable import TidemarkHub

/// Devices that listen, without a network.
struct ConnectedDevicesTests {
    let alice: IdentityID
    let bob: IdentityID
    let pool: PoolID
    let notes: APIDatasetName

    init() throws {
        alice = try #require(IdentityID("us-east-1:a"))
        bob = try #require(IdentityID("us-east-1:b"))
        pool = try #require(PoolID("us-east-1:1"))
        notes = try #require(APIDatasetName("notes"))
    }

    private func connection(
        _ device: String, of identity: IdentityID, endsAt: UInt64 = .max
    ) throws -> DeviceConnection {
        DeviceConnection(
            device: try #require(DeviceID(device)), identity: identity, pool: pool, endsAt: endsAt)
    }

    private static func counts(_ connection: DeviceConnection) -> [String: UInt64] {
        var counts: [String: UInt64] = [:]
        for count in connection.take().counts { counts[count.dataset] = count.count }
        return counts
    }

    @Test("other devices of the identity are told what they want to hear of, the newest once")
    func telling() throws {
        let devices = ConnectedDevices(connectionsMax: 10)
        let first = try connection("1", of: alice)
        let second = try connection("2", of: alice)
        let foreign = try connection("3", of: bob)
        for connection in [first, second, foreign] {
            #expect(devices.open(connection))
            connection.begin(["notes": 1])
            #expect(Self.counts(connection) == ["notes": 1])
        }
        let other = try #require(APIDatasetName("other"))
        for count in 2...50 as ClosedRange<UInt64> {
            devices.tell(alice, notes, count: count, except: first.device)
            devices.tell(alice, other, count: count, except: nil)
        }
        // A count that comes late takes nothing back.
        devices.tell(alice, notes, count: 3, except: first.device)
        #expect(Self.counts(first).isEmpty)
        #expect(Self.counts(second) == ["notes": 50])
        #expect(Self.counts(second).isEmpty)
        #expect(Self.counts(foreign).isEmpty)
        devices.add(other, to: second.device, of: alice)
        devices.remove(notes, from: second.device, of: alice)
        devices.tell(alice, notes, count: 51, except: nil)
        devices.tell(alice, other, count: 51, except: nil)
        #expect(Self.counts(second) == ["other": 51])
    }

    @Test("what changes while the store is read is not missed")
    func beginning() throws {
        let connection = try connection("1", of: alice)
        connection.tell("notes", 7)
        connection.tell("foreign", 8)
        #expect(connection.take().counts.isEmpty)
        connection.begin(["notes": 5, "tasks": 3])
        #expect(Self.counts(connection) == ["notes": 7, "tasks": 3])
        connection.tell("foreign", 9)
        #expect(Self.counts(connection).isEmpty)
    }

    @Test("what is subscribed to while the store is read is heard of, what is ended is not")
    func subscribingEarly() throws {
        let connection = try connection("1", of: alice)
        connection.add("notes")
        connection.add("left")
        connection.tell("notes", 7)
        connection.tell("left", 8)
        connection.remove("left")
        connection.begin(["tasks": 3])
        #expect(Self.counts(connection) == ["notes": 7, "tasks": 3])
        connection.tell("notes", 9)
        connection.tell("left", 9)
        #expect(Self.counts(connection) == ["notes": 9])
    }

    @Test("an identity has so many connections, those included that are on their way out")
    func perIdentity() throws {
        let devices = ConnectedDevices(connectionsMax: 10, connectionsPerIdentityMax: 2)
        let former = try connection("1", of: alice)
        #expect(devices.open(former))
        #expect(try devices.open(connection("1", of: alice)))
        #expect(try !devices.open(connection("1", of: alice)))
        #expect(try devices.open(connection("2", of: bob)))
        devices.remove(former)
        #expect(try devices.open(connection("1", of: alice)))
    }

    @Test("a connection that is closed and does not end is broken off")
    func stuck() throws {
        let cuts = Mutex(0)
        let devices = ConnectedDevices(connectionsMax: 10)
        let connection = DeviceConnection(
            device: try #require(DeviceID("1")), identity: alice, pool: pool, endsAt: 1_000,
            cut: { cuts.withLock { $0 += 1 } })
        #expect(devices.open(connection))
        devices.tick(now: 999, isBeat: true)
        devices.tick(now: 1_000, isBeat: true)
        // It has from one look to the next to end by itself.
        devices.tick(now: 1_001, isBeat: true)
        #expect(cuts.withLock { $0 } == 0)
        devices.tick(now: 1_002, isBeat: true)
        #expect(cuts.withLock { $0 } == 1)
        devices.remove(connection)
        devices.tick(now: 1_003, isBeat: true)
        #expect(cuts.withLock { $0 } == 1)
    }

    @Test("a device has one connection, the newest")
    func newest() throws {
        let devices = ConnectedDevices(connectionsMax: 10)
        let former = try connection("1", of: alice)
        let latter = try connection("1", of: alice)
        #expect(devices.open(former))
        #expect(devices.open(latter))
        #expect(former.take().isClosed)
        #expect(!latter.take().isClosed)
        #expect(devices.count == 2)
        devices.remove(former)
        devices.remove(former)
        #expect(devices.count == 1)
        devices.close(latter.device, of: alice)
        #expect(latter.take().isClosed)
    }

    @Test("more than the bound are refused, and none when the hub shuts down")
    func bounded() throws {
        let devices = ConnectedDevices(connectionsMax: 1)
        let first = try connection("1", of: alice)
        #expect(devices.open(first))
        #expect(!devices.hasRoom)
        #expect(try !devices.open(connection("2", of: alice)))
        devices.remove(first)
        #expect(devices.hasRoom)
        devices.closeAll()
        #expect(!devices.hasRoom)
        #expect(try !devices.open(connection("3", of: bob)))
        #expect(devices.count == 0)
    }

    @Test("those whose time is over are closed, the others get a sign of life")
    func ticks() throws {
        let devices = ConnectedDevices(connectionsMax: 10)
        let short = try connection("1", of: alice, endsAt: 1_000)
        let long = try connection("2", of: alice, endsAt: 2_000)
        for connection in [short, long] { #expect(devices.open(connection)) }
        devices.tick(now: 999, isBeat: false)
        #expect(!short.take().isClosed)
        devices.tick(now: 1_000, isBeat: true)
        #expect(short.take().isClosed)
        let news = long.take()
        #expect(!news.isClosed)
        #expect(news.isBeatDue)
        #expect(!long.take().isBeatDue)
        devices.closeAll(of: alice)
        #expect(long.take().isClosed)
    }
}
