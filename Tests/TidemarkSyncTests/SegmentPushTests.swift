import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A peer that has nothing of a dataset is handed it as it lies in the sealed segments. What it
/// holds then is what it would hold had every record been pushed, and whatever stands in the way,
/// every record is pushed.
struct SegmentPushTests {
    private let directory = TemporaryDirectory()

    /// With a dataset of a few sealed runs, and a tail that is not sealed.
    private func sender(
        _ random: inout TestSupport.SeededGenerator, writes: Int = 3_000
    ) throws -> TestReplica {
        try BootstrapTests(directory: directory).sender(&random, writes: writes)
    }

    private func options() -> SyncOptions {
        var options = SyncOptions()
        options.segmentBytesMin = 0
        return options
    }

    private func versions(_ replica: TestReplica) throws -> [[Record]] {
        let dataset = try replica.dataset()
        return try dataset.records(includingDeleted: true).collect().map { record in
            try dataset.history(of: record.key)
        }
    }

    /// How often a message of a kind is sent.
    private final class Counter: SyncTransport {
        private let responder: SyncResponder
        private let kinds = Mutex<[String]>([])
        private let change: @Sendable (SyncMessage) -> SyncMessage

        init(
            _ responder: SyncResponder,
            _ change: @escaping @Sendable (SyncMessage) -> SyncMessage = { $0 }
        ) {
            self.responder = responder
            self.change = change
        }

        func count(of kind: String) -> Int {
            kinds.withLock { kinds in kinds.count { $0 == kind } }
        }

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            kinds.withLock { $0.append(MessageLabel.kind(of: request)) }
            let message = try SyncMessage(MessageFrame.decoded(request))
            return responder.respond(to: try change(message).encoded())
        }
    }

    @Test("Random stores: the same as by pages", arguments: 0..<6)
    func sameAsPages(run: UInt64) async throws {
        var random = TestSupport.SeededGenerator(Seed(baseSeed + run))
        let sender = try sender(&random, writes: 1_500 + random.below(3_000))
        if random.oneIn(3) { try sender.store.compact() }
        let whole = try TestReplica("whole", in: directory)
        let paged = try TestReplica("paged", in: directory)
        let transport = Counter(whole.responder)
        let result = try await sender.dataset().synchronize(with: transport, options: options())
        _ = try await sender.dataset().synchronize(with: paged.transport)
        #expect(transport.count(of: "segmentRangePush") > 1, "seed \(baseSeed + run)")
        #expect(result.pushed > 500 && result.isComplete)
        try expectEqual([sender, whole, paged], "seed \(baseSeed + run)")
        // Of each key the sender's versions, too, while pages bring only the newest.
        #expect(try versions(whole) == versions(sender))
        let count = try whole.dataset().knowledge().syncCount
        #expect(try whole.store.verify().damages.isEmpty)
        #expect(
            try whole.dataset().knowledge().vector == paged.dataset().knowledge().vector)
        // From now on it is like any other replica, and nothing is told again.
        let second = try await sender.dataset().synchronize(with: whole.transport)
        #expect(second.pulled == 0 && second.pushed == 0)
        #expect(try whole.dataset().knowledge().syncCount == count)
        try whole.reopen()
        try whole.dataset().put("of yours", for: "key 3")
        try sender.dataset().put("of mine", for: "key 4")
        let third = try await sender.dataset().synchronize(with: whole.transport)
        #expect(third.pulled == 1 && third.pushed == 1)
        _ = try await paged.dataset().synchronize(with: whole.transport)
        try expectEqual([sender, whole, paged], "seed \(baseSeed + run)")
    }

    @Test func interruptedAtEveryMessageItGoesOn() async throws {
        var random = TestSupport.SeededGenerator(Seed(baseSeed))
        let sender = try sender(&random)
        let wanted = try Contents(sender.dataset())
        let whole = try TestReplica("whole", in: directory)
        let all = FaultyTransport(whole.responder)
        _ = try await sender.dataset().synchronize(with: all, options: options())
        #expect(all.messageCount > 5)
        for messages in 0..<all.messageCount {
            for fault in [FaultyTransport.Fault.losesRequest, .losesAnswer] {
                let receiver = try TestReplica("receiver \(messages) \(fault)", in: directory)
                let broken = FaultyTransport(receiver.responder, fault, after: messages)
                await #expect(throws: SyncError.self) {
                    try await sender.dataset().synchronize(with: broken, options: options())
                }
                if messages % 2 == 0 { try receiver.reopen() }
                let result = try await sender.dataset().synchronize(
                    with: receiver.transport, options: options())
                #expect(result.isComplete)
                #expect(try Contents(receiver.dataset()) == wanted, "\(messages) \(fault)")
                #expect(try receiver.store.verify().damages.isEmpty)
                try receiver.store.close()
            }
        }
    }

    @Test func whatHasComeDoesNotGoAgain() async throws {
        var random = TestSupport.SeededGenerator(Seed(3))
        let sender = try sender(&random)
        let receiver = try TestReplica("receiver", in: directory)
        // The greeting, the offer and two of three parts.
        let broken = FaultyTransport(receiver.responder, .losesAnswer, after: 3)
        await #expect(throws: SyncError.self) {
            try await sender.dataset().synchronize(with: broken, options: options())
        }
        let transport = Counter(receiver.responder)
        _ = try await sender.dataset().synchronize(with: transport, options: options())
        // The third, and that it was all.
        #expect(transport.count(of: "segmentRangePush") == 2)
        try expectEqual([sender, receiver])
    }

    @Test("Blocks that a bit has turned over in go by pages", arguments: 0..<12)
    func spoiledBlocks(run: UInt64) async throws {
        var random = TestSupport.SeededGenerator(Seed(baseSeed + run))
        let sender = try sender(&random, writes: 1_500)
        let receiver = try TestReplica("receiver", in: directory)
        let state = Mutex(random)
        let transport = Counter(receiver.responder) { message in
            guard case .segmentRangePush(var push) = message, var range = push.range else {
                return message
            }
            let bit = state.withLock { $0.below(range.blocks.bytes.count * 8) }
            range.blocks.bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            push.range = range
            return .segmentRangePush(push)
        }
        let result = try await sender.dataset().synchronize(with: transport, options: options())
        #expect(transport.count(of: "segmentRangePush") == 1 && result.isComplete)
        try expectEqual([sender, receiver], "seed \(baseSeed + run)")
        #expect(try receiver.store.verify().damages.isEmpty)
        let files = try Files.list(receiver.store.path)
        #expect(!files.contains { $0.hasSuffix(".part") || $0.hasSuffix(".from") }, "\(files)")
    }

    @Test func otherwiseItGoesByPages() async throws {
        var random = TestSupport.SeededGenerator(Seed(5))
        let sender = try sender(&random)
        func ranges(
            _ name: String, _ limits: SyncResponder.Limits = SyncResponder.Limits(),
            validate: (@Sendable (Record) throws -> Void)? = nil,
            prepare: (TestReplica) throws -> Void = { _ in }
        ) async throws -> Int {
            let receiver = try TestReplica(name, in: directory)
            try prepare(receiver)
            let transport = Counter(
                SyncResponder(store: receiver.store, limits: limits, validate: validate))
            _ = try await sender.dataset().synchronize(with: transport, options: options())
            try expectEqual([sender, receiver], Comment(rawValue: name))
            return transport.count(of: "segmentRangePush")
        }
        #expect(try await ranges("as it is") > 1)
        #expect(try await ranges("never", .init(segmentBytesMin: .max)) == 0)
        #expect(try await ranges("a quota", .init(quota: SyncQuota())) == 0)
        #expect(try await ranges("a check", validate: { _ in }) == 0)
        #expect(
            try await ranges("number of an empty one", prepare: { _ = try $0.dataset("other") }) > 1
        )
        #expect(
            try await ranges(
                "number taken",
                prepare: {
                    try $0.dataset("other").put("1", for: "its own")
                    _ = try $0.dataset()
                }) == 0)
        #expect(
            try await ranges(
                "not empty", prepare: { try $0.dataset().put("here", for: "here first") }) == 0)
    }

    @Test func aWriteMeanwhileIsMet() async throws {
        var random = TestSupport.SeededGenerator(Seed(6))
        let sender = try sender(&random)
        let receiver = try TestReplica("receiver", in: directory)
        let other = try receiver.dataset()
        let transport = Counter(receiver.responder) { message in
            if case .segmentRangePush(let push) = message, push.range == nil {
                _ = try? other.put("of its own", for: "key of its own")
            }
            return message
        }
        let result = try await sender.dataset().synchronize(with: transport, options: options())
        #expect(result.isComplete && result.pushed > 1_000)
        // As what is written during any push, it comes with the next exchange.
        let next = try await sender.dataset().synchronize(with: receiver.transport)
        #expect(next.pulled == 1 && next.pushed == 0)
        #expect(try sender.dataset().text("key of its own") == "of its own")
        try expectEqual([sender, receiver])
    }

    @Test func eachRecordIsToldOnceAndCounted() async throws {
        let sender = try TestReplica("sender", in: directory)
        for number in 0..<5_000 { try sender.dataset().put("value", for: "key \(number)") }
        try sender.store.sealAll()
        for number in 4_990..<5_010 { try sender.dataset().put("tail", for: "key \(number)") }
        let receiver = try TestReplica("receiver", in: directory)
        let told = Mutex<[[UInt8]]>([])
        var options = options()
        options.observer = { event in
            if case .remoteChanged(_, let keys) = event { told.withLock { $0 += keys } }
        }
        let result = try await sender.dataset().synchronize(
            with: receiver.transport, options: options)
        let keys = told.withLock { $0 }
        #expect(keys.count == 5_010 && Set(keys).count == 5_010)
        #expect(result.pushed == 5_020, "ten of them in two versions")
    }

    @Test func nobodyUsesUpTheNumbersOfDatasets() async throws {
        let sender = try TestReplica("sender", in: directory)
        for number in 0..<1_000 { try sender.dataset().put("value", for: "key \(number)") }
        let receiver = try TestReplica("receiver", in: directory)
        let transport = Counter(receiver.responder) { message in
            guard case .segmentsPush(var push) = message else { return message }
            push.offer.dataset = SyncLimits.pushedDatasetNumberMax + 1
            return .segmentsPush(push)
        }
        _ = try await sender.dataset().synchronize(with: transport, options: options())
        #expect(transport.count(of: "segmentsPush") == 1)
        #expect(transport.count(of: "segmentRangePush") == 0)
        try expectEqual([sender, receiver])
    }
}
