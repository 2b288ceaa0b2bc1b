import Testing
import Tidemark

@testable import TidemarkSync

// One store, many peers, each with datasets of its own:
//
//     a   notes ──┐                    ┌── x:notes
//                 ├── hub (one store) ─┤
//     c   notes ──┘                    └── y:notes
//
// The property: whatever a peer says, it reads and changes nothing whose name in the store does not
// begin with its prefix, and is told of nothing else.

/// Peers that see a part of a store, under names of their own.
struct DatasetNamespaceTests {
    let a: TestReplica
    let hub: TestReplica
    let c: TestReplica
    private let x = DatasetNamespace(prefix: "x:")
    private let y = DatasetNamespace(prefix: "y:")

    init() throws { (a, hub, c) = try TestReplica.three() }

    private func responder(_ namespace: DatasetNamespace) -> SyncResponder {
        SyncResponder(store: hub.store, namespace: namespace)
    }

    private func transport(_ namespace: DatasetNamespace) -> InMemoryTransport {
        InMemoryTransport(responder(namespace))
    }

    private func ask(
        _ message: SyncMessage, _ namespace: DatasetNamespace
    ) throws -> SyncMessage {
        let answer = responder(namespace).respond(to: try message.encoded())
        return try SyncMessage(MessageFrame.decoded(answer))
    }

    @Test func twoPeersUseTheSameNamesAndMeetNothingOfEachOther() async throws {
        try a.dataset().put("a's", for: "key")
        try c.dataset().put("c's", for: "key")
        try a.dataset("only-a").put("1", for: "key")
        for _ in 0..<2 {
            try await a.store.synchronize(with: transport(x))
            try await c.store.synchronize(with: transport(y))
        }
        #expect(try hub.store.datasetNames() == ["x:notes", "x:only-a", "y:notes"])
        #expect(try a.store.datasetNames() == ["notes", "only-a"])
        #expect(try c.store.datasetNames() == ["notes"])
        try expectEqual([a.dataset(), hub.dataset("x:notes")])
        try expectEqual([c.dataset(), hub.dataset("y:notes")])
        // Both ways, and deletions.
        try hub.dataset("x:notes").delete("key")
        try hub.dataset("x:more").put("2", for: "key")
        try await a.store.synchronize(with: transport(x))
        #expect(try a.dataset().text("key") == nil)
        #expect(try a.dataset("more").text("key") == "2")
        #expect(try hub.dataset("y:notes").text("key") == "c's")
        try a.store.deleteDataset("more")
        let report = await a.store.synchronizeEach(with: transport(x))
        #expect(report["more"]?.isComplete == true)
        #expect(try hub.store.existingDataset("x:more") == nil)
    }

    /// The dataset of another is neither found nor made, by whatever request.
    @Test(arguments: MessageTests.messages)
    func everyRequestStaysInItsNamespace(_ message: SyncMessage) throws {
        let entered = try message.entering(x)
        switch (message, entered) {
        case (.hello(let before), .hello(let after)):
            #expect(after.names == before.names?.map { "x:" + $0 })
            #expect(after.after == before.after.map { "x:" + $0 })
        case (.watch(let before), .watch(let after)):
            #expect(after.items.map(\.dataset) == before.items.map { "x:" + $0.dataset })
            #expect(after.items.map(\.since) == before.items.map(\.since))
        default:
            guard let address = message.address else {
                #expect(entered == message && message.kind.rawValue >= 0x81)
                return
            }
            #expect(address.dataset == "notes" && entered.address?.dataset == "x:notes")
            #expect(entered.address?.from == address.from && entered.address?.to == address.to)
            // Nothing else has changed.
            #expect(try entered.entering(.all) == entered)
        }
        #expect(entered.kind == message.kind)
        #expect(try message.entering(.all) == message)
        #expect(message.leaving(.all) == message)
    }

    @Test func noNameLeadsOut() throws {
        try hub.dataset("y:notes").put("secret", for: "key")
        try hub.dataset("hub:keys").put("secret", for: "key")
        let (from, to) = (a.store.replicaID, hub.store.replicaID)
        let names = [
            "", ".", "..", "y:notes", ":notes", "~batons", "~quarantine", "../y:notes", "notes\0",
            "y:notes\0", "\u{8}\u{8}y:notes", String(repeating: "n", count: 255),
        ]
        for name in names {
            let hello = SyncMessage.hello(
                HelloRequest(versions: 1...1, from: from, names: [name], after: nil))
            switch try ask(hello, x) {
            case .helloAnswer(let answer):
                #expect(Set(answer.datasets.map(\.name)).isSubset(of: [name]))
                #expect(answer.datasets.allSatisfy { $0.knowledge == nil })
            case .failure(let failure):
                #expect(failure.code == "badMessage")
                expectNothingTold(by: failure)
            default: Issue.record("no answer to \(name)")
            }
            let page = RecordPage(
                records: [], through: .zero, isLast: true, knowledge: MessageTests.knowledge)
            let address = Address(from: from, to: to, dataset: name)
            let requests: [SyncMessage] = [
                .pull(
                    PullRequest(
                        address: address, since: .zero, recordsMax: 10, bytesMax: 1_000,
                        vector: VersionVector())),
                .records(RecordsRequest(address: address, keys: [Array("key".utf8)], bytesMax: 9)),
                .burial(BurialRequest(address: address, page: page)),
                .segments(SegmentsRequest(address: address)),
            ]
            for request in requests {
                guard case .failure(let failure) = try ask(request, x) else {
                    Issue.record("\(request.kind) of \(name) was answered")
                    continue
                }
                expectNothingTold(by: failure)
            }
        }
        #expect(try hub.store.datasetNamesForSync() == ["hub:keys", "y:notes"])
        #expect(try hub.dataset("y:notes").text("key") == "secret")
    }

    private func expectNothingTold(
        by failure: Failure, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let secrets = ["x:", hub.directory.path, "secret"]
        #expect(
            !secrets.contains { failure.message.contains($0) }, "\(failure.message)",
            sourceLocation: sourceLocation)
    }

    @Test func aStoreThatFailsTellsNothingOfItself() throws {
        let refused = responder(x)
        let hello = SyncMessage.hello(
            HelloRequest(versions: 1...1, from: a.store.replicaID, names: nil, after: nil))
        try hub.store.close()
        let answer = refused.respond(to: try hello.encoded())
        guard case .failure(let failure) = try SyncMessage(MessageFrame.decoded(answer)) else {
            Issue.record("a closed store answered")
            return
        }
        expectNothingTold(by: failure)
        #expect(failure.message.contains("its log"))
        let error = #expect(throws: SyncError.self) { try refused.answered(hello.encoded()) }
        #expect(error?.storeError?.code == .closed)
    }

    /// Names of two peers never meet in the store, as long as no prefix begins with another one.
    @Test func namesAreApart() throws {
        print("namesAreApart: TIDEMARK_SEED=\(baseSeed)")
        var random = SeededGenerator(seed: baseSeed)
        let parts = ["x", "y", ":", ".", "x:", "y:", "-", "xy"]
        for _ in 0..<5_000 {
            let name = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                parts[Int.random(in: 0..<parts.count, using: &random)]
            }.joined()
            guard name != ".", name != ".." else {
                #expect(throws: SyncError.self) { try x.storeName(of: name) }
                continue
            }
            let stored = try x.storeName(of: name)
            #expect(x.peerName(of: stored) == name, "seed \(baseSeed)")
            #expect(y.peerName(of: stored) == nil, "seed \(baseSeed)")
            #expect(x.contains(name) == (name.hasPrefix("x:") && name.count > 2))
        }
        let short = DatasetNamespace(prefix: "x:", nameBytesMax: 3)
        #expect(try short.storeName(of: "abc") == "x:abc")
        #expect(throws: SyncError.self) { try short.storeName(of: "abcd") }
    }

    @Test func whatIsHiddenIsNotThere() async throws {
        let open = DatasetNamespace(prefix: "", hiding: "hub:")
        try hub.dataset("hub:keys").put("secret", for: "key")
        try hub.dataset("x:notes").put("1", for: "key")
        try hub.dataset("notes").put("2", for: "key")
        for _ in 0..<2 {
            try await a.store.synchronize(with: transport(open))
            try hub.dataset("hub:more").put("secret", for: "key")
            try hub.dataset("notes").put("3", for: "key")
        }
        #expect(try a.store.datasetNames() == ["notes", "x:notes"])
        #expect(try a.dataset().text("key") == "3")
        let error = await #expect(throws: SyncError.self) {
            try await a.store.synchronize(with: transport(open), datasets: ["hub:keys"])
        }
        #expect(error?.storeError?.code == .datasetNotFound)
        try a.dataset("hub:keys").put("forged", for: "key")
        let names = ["hub:keys", "notes"]
        let report = await a.store.synchronizeEach(with: transport(open), datasets: names)
        #expect(report["hub:keys"]?.error?.code == .badMessage)
        #expect(report["notes"]?.isComplete == true)
        #expect(try hub.dataset("hub:keys").text("key") == "secret")
    }

    /// More datasets than one answer tells of, among those of others.
    @Test func manyDatasetsOfManyPeers() async throws {
        var batch = WriteBatch()
        for number in 0..<1_300 {
            batch.put("\(number)", for: "key", in: try hub.dataset("x:\(number)"))
            guard number.isMultiple(of: 3) else { continue }
            for prefix in ["w", "x", "y"] {
                batch.put("\(number)", for: "key", in: try hub.dataset("\(prefix)-\(number)"))
            }
        }
        try hub.store.write(batch)
        let results = try await a.store.synchronize(with: transport(x))
        #expect(results.count == 1_300)
        #expect(try a.store.datasetNames() == (0..<1_300).map { "\($0)" }.sorted())
        // No mark is told, since it is of all datasets; so all of them are looked at again.
        guard
            case .helloAnswer(let answer) = try ask(
                .hello(
                    HelloRequest(
                        versions: 1...1, from: a.store.replicaID, names: nil, after: "998",
                        marks: [try hub.store.changeMark()])), x)
        else {
            Issue.record("no answer")
            return
        }
        #expect(answer.datasets.map(\.name) == ["999"] && answer.isComplete)
        #expect(answer.mark == nil && answer.changedSince == nil)
    }

    @Test func mergedDatasetsAreToldUnderTheirOwnNames() async throws {
        try hub.dataset("x:profile").put("Ada", for: "name")
        try hub.dataset("x:profile.guest").put("dark", for: "theme")
        try hub.dataset("y:other").put("1", for: "key")
        let origin = MergedDataset(name: "x:profile.guest", origin: "guest")
        try hub.store.noteMerged(origin, into: "x:profile")
        // Which nobody would do, and which would tell x of y.
        try hub.store.noteMerged(MergedDataset(name: "y:other", origin: "y"), into: "x:profile")
        let told = Box<[String]>()
        var options = SyncOptions()
        options.mergedDatasetsHandler = { datasets in
            told.set([datasets.dataset] + datasets.merged.map { "\($0.name) \($0.origin)" })
            return .merge(.keepLocal)
        }
        try await a.dataset("profile").synchronize(with: transport(x), options: options)
        #expect(told.all == [["profile", "profile.guest guest"]])
        #expect(try a.dataset("profile").text("theme") == "dark")
        #expect(try hub.dataset("x:profile").text("theme") == "dark")
        #expect(try hub.store.existingDataset("x:profile.guest") == nil)
        #expect(try hub.dataset("y:other").text("key") == "1")
    }

    @Test func aWatchIsAboutItsOwnDatasets() async throws {
        try hub.dataset("x:notes").put("1", for: "key")
        try hub.dataset("y:notes").put("1", for: "key")
        let since = try hub.dataset("x:notes").syncCount
        let item = WatchRequest.Item(dataset: "notes", since: since)
        let request = try SyncMessage.watch(
            WatchRequest(
                from: a.store.replicaID, to: hub.store.replicaID, waitMilliseconds: 20_000,
                items: [item])
        ).encoded()
        let watched = responder(x)
        let waiting = Task { await watched.watch(request) }
        while hub.store.sleeperCount == 0 { await Task.yield() }
        try hub.dataset("y:notes").put("2", for: "key")
        try hub.dataset("x:notes").put("2", for: "key")
        let count = try hub.dataset("x:notes").syncCount
        let news = [WatchRequest.Item(dataset: "notes", since: count)]
        #expect(
            try SyncMessage(MessageFrame.decoded(await waiting.value))
                == .watchAnswer(WatchAnswer(hasWaited: true, news: news)))
    }

    /// What is about to be changed by a peer is told before and after, with its name in the store.
    @Test func theObserverIsToldOfEachChange() async throws {
        let told = Box<String>()
        let responder = SyncResponder(
            store: hub.store, namespace: x, limits: SyncResponder.Limits(), validate: nil,
            journal: .off,
            observer: PushObserver(
                willChange: { name throws(StoreError) in told.set("+\(name)") },
                didChange: { name in told.set("-\(name)") }))
        try a.dataset().put("1", for: "key")
        try await a.store.synchronize(with: InMemoryTransport(responder))
        #expect(told.all.prefix(2) == ["+x:notes", "-x:notes"])
        #expect(told.all.count.isMultiple(of: 2))
        let count = told.all.count
        // To read changes nothing.
        try await c.store.synchronize(with: InMemoryTransport(responder), datasets: ["notes"])
        let read = told.all.dropFirst(count)
        #expect(read.allSatisfy { $0 == "+x:notes" || $0 == "-x:notes" })
        let refusing = SyncResponder(
            store: hub.store, namespace: x, limits: SyncResponder.Limits(), validate: nil,
            journal: .off,
            observer: PushObserver(
                willChange: { _ throws(StoreError) in throw StoreError(.diskFull, "full") },
                didChange: { _ in Issue.record("nothing was changed") }))
        try a.dataset().put("2", for: "key")
        await #expect(throws: SyncError.self) {
            try await a.store.synchronize(with: InMemoryTransport(refusing))
        }
        #expect(try hub.dataset("x:notes").text("key") == "1")
    }
}
