import Synchronization
import TestSupport
import Testing
import Tidemark

/// The simulated disk must lose what a real one may lose: a test on a disk that keeps everything
/// proves nothing.
@Suite("Simulated storage")
struct SimulatedStorageTests {
    private let storage = SimulatedStorage(seed: Seed(1))

    private func create(_ path: String, _ bytes: [UInt8]) throws -> any StorageFile {
        let file = try storage.openFile(path, .create)
        try write(bytes, to: file, at: 0)
        return file
    }

    private func write(_ bytes: [UInt8], to file: any StorageFile, at offset: UInt64) throws {
        try unsafe bytes.withUnsafeBytes { try unsafe file.write($0, at: offset) }
    }

    private func after(_ survival: Survival, seed: UInt64 = 1) -> SimulatedStorage {
        var random = SeededGenerator(Seed(seed))
        return storage.afterPowerLoss(survival, using: &random)
    }

    @Test("What was not synced may be lost, what was synced is kept")
    func synced() throws {
        let file = try create("/file", [1, 2, 3])
        #expect(after(.nothing).contents(of: "/file") == nil)
        try file.sync()
        #expect(after(.nothing).contents(of: "/file") == nil, "the name was not synced")
        try storage.syncDirectory("/")
        #expect(after(.nothing).contents(of: "/file") == [1, 2, 3])
        try write([9], to: file, at: 1)
        #expect(storage.contents(of: "/file") == [1, 9, 3])
        #expect(after(.nothing).contents(of: "/file") == [1, 2, 3])
        #expect(after(.everything).contents(of: "/file") == [1, 9, 3])
        try file.truncate(to: 1)
        #expect(after(.nothing).contents(of: "/file") == [1, 2, 3])
        #expect(after(.everything).contents(of: "/file") == [1])
    }

    @Test("Pages survive independently, also later ones without earlier ones")
    func pages() throws {
        let file = try create("/file", [UInt8](repeating: 0, count: 4_096 * 8))
        try file.sync()
        try storage.syncDirectory("/")
        try write([UInt8](repeating: 1, count: 4_096 * 8), to: file, at: 0)
        var sawHole = false
        var sawTornPage = false
        for seed in 0..<100 {
            let bytes = try #require(
                after(.chance(percent: 50), seed: UInt64(seed)).contents(of: "/file"))
            let heads = (0..<8).map { bytes[$0 * 4_096] }
            sawHole = sawHole || zip(heads, heads.dropFirst()).contains { $0 == 0 && $1 == 1 }
            for page in 0..<8 {
                let slice = bytes[(page * 4_096)..<((page + 1) * 4_096)]
                sawTornPage = sawTornPage || (slice.first != slice.last)
            }
        }
        #expect(sawHole && sawTornPage)
    }

    @Test("Stores into a mapping are live at once and durable by page when synced")
    func mapping() throws {
        let file = try storage.openFile("/log", .create)
        let memory = try unsafe file.map(size: 4_096 * 3, reserving: 4_096 * 3)
        #expect(try file.size() == 4_096 * 3)
        try file.sync()
        try storage.syncDirectory("/")
        unsafe memory.storeBytes(of: 7, toByteOffset: 10, as: UInt8.self)
        unsafe memory.storeBytes(of: 8, toByteOffset: 4_096 * 2, as: UInt8.self)
        let live = try #require(storage.contents(of: "/log"))
        #expect(live[10] == 7 && live[4_096 * 2] == 8)
        try file.syncMapping(offset: 4_096 * 2, count: 1)
        let durable = try #require(after(.nothing).contents(of: "/log"))
        #expect(durable.count == 4_096 * 3)
        #expect(durable[10] == 0 && durable[4_096 * 2] == 8)
    }

    @Test("A rename replaces its target and is durable only with its directory")
    func renames() throws {
        try create("/old", [1]).sync()
        try storage.syncDirectory("/")
        try create("/new", [2]).sync()
        try storage.rename("/new", to: "/old")
        #expect(try storage.listDirectory("/") == ["old"])
        #expect(after(.nothing).contents(of: "/old") == [1])
        #expect(after(.everything).contents(of: "/old") == [2])
        for seed in 0..<50 {
            let disk = after(.chance(percent: 50), seed: UInt64(seed))
            #expect([[1], [2]].contains(disk.contents(of: "/old")), "a rename is atomic")
        }
        try storage.syncDirectory("/")
        #expect(after(.nothing).contents(of: "/old") == [2])
        try storage.remove("/old")
        #expect(after(.nothing).contents(of: "/old") == [2])
        #expect(after(.everything).contents(of: "/old") == nil)
    }

    @Test("A file is not there if its directory was never durable")
    func directories() throws {
        try storage.createDirectory("/store")
        try create("/store/file", [1]).sync()
        try storage.syncDirectory("/store")
        #expect(after(.nothing).contents(of: "/store/file") == nil)
        try storage.syncDirectory("/")
        #expect(after(.nothing).contents(of: "/store/file") == [1])
        #expect(throws: StoreError.self) { try storage.openFile("/nowhere/file", .create) }
        #expect(throws: StoreError.self) { try storage.openFile("/missing", .read) }
    }

    @Test("Faults hit the call they name, once or from then on")
    func faults() throws {
        let file = try create("/file", [1, 2])
        storage.faults = [StorageFault(.inputOutput, of: [.sync], after: 1)]
        try file.sync()
        expectError(.inputOutput) { try file.sync() }
        try file.sync()
        storage.faults = [StorageFault(.diskFull, of: [.write], isLasting: true)]
        for _ in 0..<3 { expectError(.diskFull) { try write([1], to: file, at: 0) } }
        try file.sync()
        storage.faults = [StorageFault(.short, of: [.write])]
        expectError(.diskFull) { try write([5, 6], to: file, at: 0) }
        #expect(storage.contents(of: "/file") == [5, 2])
        storage.faults = [StorageFault(.late, of: [.write]), StorageFault(.late, of: [.rename])]
        expectError(.inputOutput) { try write([7, 8], to: file, at: 0) }
        #expect(storage.contents(of: "/file") == [7, 8])
        expectError(.inputOutput) { try storage.rename("/file", to: "/other") }
        #expect(storage.contents(of: "/file") == nil && storage.contents(of: "/other") == [7, 8])
    }

    @Test("Pages that cannot be read fail each read of them, and no other")
    func badSectors() throws {
        let file = try create("/file", [UInt8](repeating: 7, count: 10_000))
        let map = unsafe try file.mapForReading()
        storage.spoil(4_100..<4_101, of: "/file")
        for (offset, count, isReadable) in [
            (0, 4_096, true), (0, 4_097, false), (4_095, 1, true), (8_191, 1, false),
            (8_192, 1_808, true), (5_000, 100, false), (5_000, 0, true), (0, 10_000, false),
        ] {
            if isReadable {
                try file.populate(offset: offset, count: count)
                let bytes = unsafe map[offset..<(offset + count)]
                #expect(unsafe bytes.allSatisfy { $0 == 7 })
            } else {
                let error = expectError(.inputOutput) {
                    try file.populate(offset: offset, count: count)
                }
                #expect(error?.location == StoreError.Location(path: "/file", offset: 4_096))
                expectError(.inputOutput) {
                    let memory = UnsafeMutableRawBufferPointer.allocate(
                        byteCount: count, alignment: 8)
                    defer { unsafe memory.deallocate() }
                    try unsafe file.read(into: memory, at: UInt64(offset))
                }
            }
        }
        #expect(unsafe map[4_096..<8_192].allSatisfy { $0 != 7 })
        #expect(throws: StoreError.self) {
            try after(.everything).openFile("/file", .read).populate(offset: 8_000, count: 1)
        }
    }

    @Test("A full disk refuses what would need more room, and nothing else")
    func capacity() throws {
        storage.capacityBytes = 100
        let file = try create("/file", [UInt8](repeating: 1, count: 60))
        expectError(.diskFull) { try create("/other", [UInt8](repeating: 1, count: 60)) }
        expectError(.diskFull) { _ = try unsafe file.map(size: 101, reserving: 101) }
        try write([UInt8](repeating: 2, count: 60), to: file, at: 0)
        try storage.remove("/other")
    }

    @Test("The lock is held until it is let go, and never survives the process")
    func lock() throws {
        var held: (any StorageLock)? = try storage.lock("/")
        #expect(held != nil)
        expectError(.locked) { try storage.lock("/") }
        _ = try after(.everything).lock("/")
        held = nil
        _ = try storage.lock("/")
    }

    @Test("Calls are traced, and the observer sees their effect")
    func observation() throws {
        let seen = Mutex<[[UInt8]?]>([])
        storage.startTracing()
        storage.observe { [storage] _ in
            seen.withLock { $0.append(storage.contents(of: "/file")) }
        }
        _ = try create("/file", [1])
        storage.observe(nil)
        #expect(storage.trace.map(\.kind) == [.openFile, .write])
        #expect(seen.withLock { $0 } == [[], [1]])
    }

    @Test("Writeback may make anything durable before it is asked to")
    func writeback() throws {
        let file = try create("/file", [1])
        try storage.syncDirectory("/")
        storage.writebackOneIn = 1
        for _ in 0..<64 { _ = try file.size() }
        #expect(after(.nothing).contents(of: "/file") == [1])
    }

    @Test("The same seed loses the same")
    func determinism() throws {
        let file = try create("/file", [UInt8](repeating: 1, count: 100_000))
        try storage.syncDirectory("/")
        #expect(try file.size() == 100_000)
        let first = after(.chance(percent: 50), seed: 5).contents(of: "/file")
        #expect(after(.chance(percent: 50), seed: 5).contents(of: "/file") == first)
    }
}
