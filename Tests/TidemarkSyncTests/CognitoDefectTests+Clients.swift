import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

// 2.7: the clients for iOS, Android, Unity and .NET.

extension CognitoDefectTests {
    /// iOS: `setString` returned nothing, and what was refused was found in a debug log at best.
    @Test("2.7 iOS: a refused put throws")
    func aRefusedPutThrows() async throws {
        try a.dataset().put("before", for: "key")
        for key in [[], [UInt8](repeating: 7, count: Limits.keyBytesMax + 1)] {
            let error = #expect(throws: StoreError.self) { try a.dataset().put([1], for: key) }
            #expect(error?.code == .invalidArgument)
        }
        let dot = try #require(try a.dataset().record(for: "key")).version.dot
        try a.dataset().put("after", for: "key")
        let error = #expect(throws: StoreError.self) {
            try a.dataset().put([2], for: Array("key".utf8), ifAt: dot)
        }
        #expect(error?.code == .versionMismatch)
        try await a.dataset().synchronize(with: b.transport)
        let records = try b.dataset().records().collect()
        #expect(records.map(\.valueText) == ["after"])
    }

    /// iOS: two counts were compared as objects, so that equal ones differed, and every exchange
    /// went over everything.
    @Test("2.7 iOS: counts compare by value")
    func countsCompareByValue() async throws {
        try fill(a, 0..<300, "ours")
        try await a.dataset().synchronize(with: b.transport)
        let (first, second) = (try a.dataset().syncCount, try a.dataset().syncCount)
        #expect(first == second)
        #expect(SyncCount(rawValue: 300_000) == SyncCount(rawValue: 300_000))
        let counting = InterposedTransport(b.responder) { _ in }
        try await a.dataset().synchronize(with: counting)
        #expect(counting.messageCount == 1)
    }

    /// iOS: sizes were compared with the limit of something else.
    @Test("2.7 iOS: each limit is its own")
    func eachLimitIsItsOwn() async throws {
        let key = [UInt8](repeating: 7, count: Limits.keyBytesMax)
        let value = [UInt8](repeating: 8, count: Limits.keyBytesMax + 1)
        let name = String(repeating: "n", count: Limits.datasetNameBytesMax)
        try a.dataset(name).put(value, for: key)
        try await a.store.synchronize(with: b.transport)
        #expect(try b.dataset(name).get(key) == value)
        try expectEqual([a, b], dataset: name)
        #expect(throws: StoreError.self) { try a.dataset(name + "n") }
        let report = await a.store.synchronizeEach(
            with: b.transport, datasets: [name + "n", name])
        #expect(report[name]?.isComplete == true)
        #expect(report[name + "n"]?.error?.storeError?.code == .invalidArgument)
    }

    /// iOS: of a full dataset no record could be changed, and one could be added: the test of the
    /// number of records stood the wrong way round.
    @Test("2.7 iOS: of what is full a record can be changed and none added")
    func ofWhatIsFullARecordCanBeChangedAndNoneAdded() async throws {
        var quota = SyncQuota()
        quota.recordsMax = 8
        let transport = InMemoryTransport(
            SyncResponder(
                store: b.store, namespace: DatasetNamespace(prefix: "x:"),
                limits: SyncResponder.Limits(quota: quota)))
        try fill(a, 0..<8, "first")
        try await a.dataset().synchronize(with: transport)
        let there = try b.dataset("x:notes")
        #expect(try there.count() == 8)
        try fill(a, 0..<1, "changed")
        #expect(try await a.dataset().synchronize(with: transport).pushed == 1)
        #expect(try there.text("key 0") == "changed 0")
        try fill(a, 8..<9, "new")
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport)
        }
        #expect(error?.code == .recordRefused)
        #expect(try there.count() == 8)
        #expect(try there.text("key 8") == nil)
    }

    /// Android: an edit during a push kept the old count, met its own push as a conflict the next
    /// time, and the default handler dropped the newer edit.
    @Test(
        "2.7 Android: no conflict with oneself",
        arguments: [FaultyTransport.Fault.losesRequest, .losesAnswer], [false, true])
    func noConflictWithOneself(
        _ fault: FaultyTransport.Fault, _ reopens: Bool
    ) async throws {
        try fill(a, 0..<5, "base")
        try await a.dataset().synchronize(with: b.transport)
        try fill(a, 0..<5, "first")
        let ours = try a.dataset()
        let transport = InterposedTransport(b.responder) { point in
            let moment: InterposedTransport.Moment =
                fault == .losesRequest ? .beforeRequest : .beforeAnswer
            guard point.kind == "push", point.moment == moment else { return }
            try ours.put("second", for: "key 0")
            throw SyncError(.unreachable, "the test lost the push; repeat the exchange")
        }
        await #expect(throws: SyncError.self) { try await ours.synchronize(with: transport) }
        if reopens { try a.reopen() }
        try a.dataset().put("third", for: "key 1")
        let result = try await a.dataset().synchronize(
            with: b.transport, options: Self.allowsNoConflict)
        #expect(result.conflicts == 0)
        #expect(try b.dataset().text("key 0") == "second")
        #expect(try b.dataset().text("key 1") == "third")
        try expectEqual([a, b])
    }

    /// Unity and .NET: attempts ran out, and no event of any kind told of it.
    @Test("2.7 Unity: exhausted attempts end in one failure")
    func exhaustedAttemptsEndInOneFailure() async throws {
        try fill(a, 0..<3, "base")
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: "key 0")
        let theirs = try b.dataset()
        let transport = InterposedTransport(b.responder) { point in
            guard point.moment == .beforeRequest else { return }
            try theirs.put("theirs \(point.number)", for: "key 0")
        }
        let report = await a.store.synchronizeEach(
            with: transport, options: SyncOptions(policy: .keepLocal, attemptsMax: 4))
        #expect(report.datasets.count == 1)
        #expect(report["notes"]?.error?.code == .contended)
        #expect(report["notes"]?.result?.attempts == 4)
        #expect(report["notes"]?.error?.message.contains("4 attempts") == true)
        #expect(report.error == nil)
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }

    /// Unity and .NET: the count that was read for one identity was used for the next one.
    @Test("2.7 Unity: positions belong to a peer", arguments: 1...3)
    func positionsBelongToAPeer(_ messagesBefore: Int) async throws {
        try fill(a, 0..<20, "ours")
        try await a.dataset().synchronize(with: b.transport)
        try fill(a, 20..<30, "more")
        try fill(c, 40..<45, "theirs")
        // Behind the same address stands another store from some message on.
        let (first, second) = (b.responder, c.responder)
        let count = Mutex(0)
        let transport = ScriptedTransport { request throws(SyncError) in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return (number <= messagesBefore ? first : second).respond(to: request)
        }
        for _ in 0..<2 {
            try await a.dataset().synchronize(
                with: transport, options: SyncOptions(pageRecordsMax: 4))
        }
        #expect(try c.dataset().count() == 35)
        try expectEqual([a, c])
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }
}
