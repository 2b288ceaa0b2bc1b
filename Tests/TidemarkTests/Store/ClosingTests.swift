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

    @Test("A store that is closed while another thread compacts it is free only after that")
    func besideCompaction() throws {
        for _ in 0..<5 {
            let directory = try TemporaryDirectory()
            let path = directory["store"]
            let store = try filledStore(at: path)
            let isEnded = Atomic<Bool>(false)
            let hasBegun = Atomic<Bool>(false)
            try runOnThreads([
                {
                    _ = try? store.compact { _ in hasBegun.store(true, ordering: .releasing) }
                    isEnded.store(true, ordering: .releasing)
                },
                {
                    while !hasBegun.load(ordering: .acquiring),
                        !isEnded.load(ordering: .acquiring)
                    { sched_yield() }
                    try store.close()
                    let again = try Store.open(at: path, options: quickOptions())
                    #expect(try again.dataset("main").count() == 3_000)
                    #expect(try again.verify(threads: 1).damages.isEmpty)
                    try again.close()
                },
            ])
        }
    }

    @Test("Of two threads that close a store neither returns before it is free")
    func twice() throws {
        for _ in 0..<10 {
            let directory = try TemporaryDirectory()
            let path = directory["store"]
            let store = try filledStore(at: path)
            let openings = Mutex(0)
            let close = { @Sendable () throws -> Void in
                try store.close()
                do {
                    let again = try Store.open(at: path, options: quickOptions())
                    openings.withLock { $0 += 1 }
                    try again.close()
                } catch let error as StoreError where error.code == .locked {
                    // By the other one, who has opened it again.
                    #expect(openings.withLock { $0 } > 0 || error.message.contains("process"))
                }
            }
            try runOnThreads([close, close])
            #expect(openings.withLock { $0 } >= 1)
            let again = try Store.open(at: path, options: quickOptions())
            #expect(try again.verify(threads: 1).damages.isEmpty)
            try again.close()
        }
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
