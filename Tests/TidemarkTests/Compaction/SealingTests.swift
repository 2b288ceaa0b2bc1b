import Synchronization
import TestSupport
import Testing
import Tidemark

/// Logs become segments side by side, and part of the store one after the other.
@Suite("Sealing")
struct SealingTests {
    private func options() -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        return options
    }

    /// Property: a second log is sealed while the first is, and what is in the first never hides
    /// what is in the second.
    ///
    ///     first    writes its segment, its sync held ............. synced, part of the store
    ///     second          writes its segment, synced, waits for its turn ... part of the store
    @Test("A log that is sealed sooner than the one before waits for its turn")
    func order() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let store = try openSimulated(storage, options())
        let dataset = try store.dataset("main")
        let opened = Mutex<[String]>([])
        let synced = Mutex<Set<String>>([])
        storage.observe(
            before: { call in
                guard call.kind == .sync, call.path.hasSuffix(".seg"),
                    call.path == opened.withLock({ $0[0] })
                else { return }
                waitUntil {
                    let paths = opened.withLock { $0 }
                    return paths.count > 1 && synced.withLock { $0.contains(paths[1]) }
                }
            },
            after: { call in
                guard call.path.hasSuffix(".seg") else { return }
                if call.kind == .openFile {
                    opened.withLock { if !$0.contains(call.path) { $0.append(call.path) } }
                } else if call.kind == .sync {
                    synced.withLock { _ = $0.insert(call.path) }
                }
            })
        // The same keys in each log, which holds about a thousand of these.
        let padding = String(repeating: "x", count: 1_000)
        for number in 0..<4_000 {
            try dataset.put("\(number) \(padding)", for: "\(number % 500)")
        }
        try store.waitForBackgroundWork()
        storage.observe(nil)
        #expect(store.counters().logsSealed > 2)
        func check(_ dataset: Dataset) throws {
            #expect(try dataset.count() == 500)
            for number in 0..<500 {
                #expect(try dataset.text("\(number)") == "\(3_500 + number) \(padding)")
            }
        }
        try check(dataset)
        try store.close()
        let again = try openSimulated(storage, options())
        try check(try again.dataset("main"))
        #expect(try again.verify().damages.isEmpty)
        try again.close()
    }

    /// A crash while the second log's segment is whole and the first's is not: the manifest names
    /// neither, and both logs are read.
    @Test("What was sealed out of its turn when the process ended is read from its log")
    func crash() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let store = try openSimulated(storage, options())
        let dataset = try store.dataset("main")
        let opened = Mutex<[String]>([])
        let captured = Mutex<SimulatedStorage?>(nil)
        storage.observe(
            before: { call in
                guard call.kind == .sync, call.path.hasSuffix(".seg"),
                    call.path == opened.withLock({ $0[0] })
                else { return }
                waitUntil { captured.withLock { $0 != nil } }
            },
            after: { [unowned storage] call in
                guard call.path.hasSuffix(".seg") else { return }
                let paths = opened.withLock { paths in
                    if call.kind == .openFile, !paths.contains(call.path) {
                        paths.append(call.path)
                    }
                    return paths
                }
                guard call.kind == .sync, paths.count > 1, call.path == paths[1] else { return }
                var random = SeededGenerator(Seed(2))
                let disk = storage.afterProcessEnd(using: &random)
                captured.withLock { if $0 == nil { $0 = disk } }
            })
        let padding = String(repeating: "x", count: 1_000)
        for number in 0..<4_000 {
            try dataset.put("\(number) \(padding)", for: "\(number)")
        }
        try store.waitForBackgroundWork()
        storage.observe(nil)
        try store.close()
        let disk = try #require(captured.withLock { $0 })
        let again = try openSimulated(disk, options())
        let count = try again.dataset("main").count()
        // Two logs were full.
        #expect(count >= 1_900)
        let present = try again.dataset("main").keys().collect().count
        #expect(present == count)
        for number in 0..<count {
            #expect(try again.dataset("main").text("\(number)") == "\(number) \(padding)")
        }
        #expect(try again.verify().damages.isEmpty)
        try again.close()
    }
}
