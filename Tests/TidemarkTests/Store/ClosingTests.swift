import Glibc
import Synchronization
import TestSupport
import Testing
import Tidemark

/// Whoever opens a store after it was closed has it alone.
@Suite("The lock is given up when nothing writes any more")
struct ClosingTests {
    /// A store of some size, so that merging it takes a while.
    private func filledStore(at path: String) throws -> Store {
        var options = quickOptions()
        options.compactsAutomatically = false
        let store = try Store.open(at: path, options: options)
        let dataset = try store.dataset("main")
        var random = SeededGenerator(Seed(4))
        for number in 0..<3_000 { try dataset.put(random.bytes(400), for: bytes("key \(number)")) }
        return store
    }

    /// As many looks as whoever closes too early hardly needs.
    private static let lookCount = 50

    @Test(
        "Nobody who closes a store returns, nor is it free, before what compacts it has ended",
        arguments: [1, 2])
    func besideCompaction(closerCount: Int) throws {
        let directory = try TemporaryDirectory()
        let path = directory["store"]
        let store = try filledStore(at: path)
        let closedCount = Atomic<Int>(0)
        let looksLeft = Atomic<Int>(Self.lookCount)
        let hasBegun = Atomic<Bool>(false)
        let close = { @Sendable () throws -> Void in
            waitUntil { hasBegun.load(ordering: .acquiring) }
            try store.close()
            closedCount.add(1, ordering: .releasing)
        }
        let compact = { @Sendable () throws -> Void in
            _ = try? store.compact { _ in
                hasBegun.store(true, ordering: .releasing)
                waitUntil { store.isClosing }
                while looksLeft.load(ordering: .relaxed) > 0 {
                    looksLeft.subtract(1, ordering: .relaxed)
                    usleep(2_000)
                    let closed = closedCount.load(ordering: .acquiring)
                    #expect(closed == 0)
                    expectError(.locked) { try Store.open(at: path, options: quickOptions()) }
                }
            }
        }
        try runOnThreads([compact] + Array(repeating: close, count: closerCount))
        let (left, closed) = (
            looksLeft.load(ordering: .relaxed), closedCount.load(ordering: .acquiring)
        )
        #expect(left == 0 && closed == closerCount)
        let again = try Store.open(at: path, options: quickOptions())
        #expect(try again.dataset("main").count() == 3_000)
        #expect(try again.verify(threads: 1).damages.isEmpty)
        try again.close()
    }

    @Test("A closure that is told of progress cannot ask for what its own call is doing")
    func fromWithin() throws {
        let directory = try TemporaryDirectory()
        let store = try filledStore(at: directory["store"])
        var refusals = 0
        try store.compact { _ in
            for ask in [{ _ = try store.compact() }, { _ = try store.deleteExpired() }] {
                if expectError(.invalidArgument, ask) != nil { refusals += 1 }
            }
        }
        #expect(refusals >= 2)
        try store.close()
    }

    @Test("A closure that is told of progress may close the store")
    func closedFromWithin() throws {
        let directory = try TemporaryDirectory()
        let store = try filledStore(at: directory["store"])
        _ = try? store.compact { _ in try? store.close() }
        let again = try Store.open(at: directory["store"], options: quickOptions())
        #expect(try again.dataset("main").count() == 3_000)
        try again.close()
    }

    /// What the end of a log was reserved for goes back while the log is looked at.
    @Test("Verification beside compaction looks at nothing that is given back")
    func verificationBesideCompaction() throws {
        let directory = try TemporaryDirectory()
        let store = try filledStore(at: directory["store"])
        let isEnded = Atomic<Bool>(false)
        try runOnThreads([
            {
                defer { isEnded.store(true, ordering: .releasing) }
                let dataset = try store.dataset("main")
                for number in 0..<40 {
                    try dataset.put("\(number)", for: "again")
                    try store.compact()
                }
            },
            {
                while !isEnded.load(ordering: .acquiring) {
                    let damages = try store.verify(threads: 2).damages
                    #expect(damages.isEmpty)
                }
            },
        ])
        try store.close()
    }
}
