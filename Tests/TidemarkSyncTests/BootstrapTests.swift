import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A replica that has nothing of a dataset gets it as it lies in the peer's sealed segments. What
/// it holds then is what it would hold had it pulled every record, and whatever stands in the way,
/// it does pull every record.
struct BootstrapTests {
    let directory: TemporaryDirectory

    init() {
        self.init(directory: TemporaryDirectory())
    }

    /// A replica with a dataset of a few sealed runs, some versions of each key, tombstones, and a
    /// tail that is not sealed.
    func sender(
        _ random: inout TestSupport.SeededGenerator, writes: Int = 4_000, seals: Int = 3
    ) throws -> TestReplica {
        let sender = try TestReplica("sender", in: directory)
        let dataset = try sender.dataset()
        for number in 0..<writes {
            let key = "key \(random.below(writes / 2))"
            if random.below(8) == 0 {
                try dataset.delete(key)
            } else {
                try dataset.put("value \(number) \(random.next())", for: key)
            }
            if (number + 1) % (writes / seals) == 0 { try sender.store.sealAll() }
        }
        // What is written after this goes by pages, which bring only the newest: a key once.
        try sender.store.sealAll()
        for number in 0..<20 { try dataset.put("tail", for: "key \(number * 7)") }
        return sender
    }

    private func responder(_ replica: TestReplica, bytesMin: Int = 0) -> SyncResponder {
        SyncResponder(store: replica.store, limits: .init(segmentBytesMin: bytesMin))
    }

    private func versions(_ replica: TestReplica) throws -> [[Record]] {
        let dataset = try replica.dataset()
        return try dataset.records(includingDeleted: true).collect().map { record in
            try dataset.history(of: record.key)
        }
    }

    @Test("Random stores: the same as by pages", arguments: 0..<6)
    func sameAsPages(run: UInt64) async throws {
        var random = TestSupport.SeededGenerator(Seed(baseSeed + run))
        let sender = try sender(&random, writes: 1_500 + random.below(3_000))
        if random.oneIn(3) { try sender.store.compact() }
        let whole = try TestReplica("whole", in: directory)
        let paged = try TestReplica("paged", in: directory)
        let result = try await whole.dataset().synchronize(
            with: InMemoryTransport(responder(sender)))
        let other = try await paged.dataset().synchronize(
            with: InMemoryTransport(responder(sender)), options: SyncOptions(adoptsSegments: false))
        #expect(result.adopted > 0, "seed \(baseSeed + run)")
        #expect(other.adopted == 0)
        try expectEqual([sender, whole, paged], "seed \(baseSeed + run)")
        // Of each key the sender's versions, too, while pages bring only the newest.
        #expect(try versions(whole) == versions(sender))
        #expect(try whole.store.verify().damages.isEmpty)
        let knowledge = try whole.dataset().knowledge()
        #expect(try knowledge.vector == paged.dataset().knowledge().vector)
        // From now on it is like any other replica.
        try whole.reopen()
        try whole.dataset().put("of mine", for: "key 3")
        try sender.dataset().put("of yours", for: "key 4")
        _ = try await whole.dataset().synchronize(with: sender.transport)
        _ = try await paged.dataset().synchronize(with: whole.transport)
        try expectEqual([sender, whole, paged], "seed \(baseSeed + run)")
    }

    @Test func theSecondExchangeIsIdle() async throws {
        var random = TestSupport.SeededGenerator(Seed(1))
        let sender = try sender(&random)
        try sender.store.sealAll()
        let receiver = try TestReplica("receiver", in: directory)
        let transport = FaultyTransport(responder(sender))
        let result = try await receiver.dataset().synchronize(with: transport)
        #expect(result.adopted > 1_000)
        let count = transport.messageCount
        let second = try await receiver.dataset().synchronize(with: transport)
        #expect(second.pulled == 0 && second.pushed == 0 && second.adopted == 0)
        #expect(transport.messageCount == count + 1)
        // Nor does the sender find anything to take.
        let back = try await sender.dataset().synchronize(with: receiver.transport)
        #expect(back.pulled == 0 && back.pushed == 0)
        try expectEqual([sender, receiver])
    }

    @Test func aBoundOrADryRunGoesByPages() async throws {
        var random = TestSupport.SeededGenerator(Seed(7))
        let sender = try sender(&random)
        let receiver = try TestReplica("receiver", in: directory)
        _ = try receiver.dataset()
        let transport = InMemoryTransport(responder(sender))
        let report = try await receiver.store.forecast(with: transport, datasets: ["notes"])
        #expect(report["notes"]?.result?.adopted == 0)
        #expect(report["notes"]?.result?.pulled ?? 0 > 1_000)
        let result = try await receiver.dataset().synchronize(
            with: transport, options: SyncOptions(recordsPerRunMax: 100_000))
        #expect(result.adopted == 0 && result.isComplete)
        try expectEqual([sender, receiver])
    }

    @Test func interruptedAtEveryMessageItGoesOn() async throws {
        var random = TestSupport.SeededGenerator(Seed(2))
        let sender = try sender(&random)
        let wanted = try Contents(sender.dataset())
        let whole = try TestReplica("whole", in: directory)
        let all = FaultyTransport(responder(sender))
        _ = try await whole.dataset().synchronize(with: all)
        for messages in 0..<all.messageCount {
            for fault in [FaultyTransport.Fault.losesRequest, .losesAnswer] {
                let receiver = try TestReplica("receiver \(messages) \(fault)", in: directory)
                let broken = FaultyTransport(responder(sender), fault, after: messages)
                await #expect(throws: SyncError.self) {
                    try await receiver.dataset().synchronize(with: broken)
                }
                if messages % 2 == 0 { try receiver.reopen() }
                let result = try await receiver.dataset().synchronize(
                    with: InMemoryTransport(responder(sender)))
                #expect(result.dataset == "notes")
                #expect(try Contents(receiver.dataset()) == wanted, "\(messages) \(fault)")
                #expect(try receiver.store.verify().damages.isEmpty)
                try receiver.store.close()
            }
        }
    }

    @Test func whatHasComeDoesNotComeAgain() async throws {
        var random = TestSupport.SeededGenerator(Seed(3))
        let sender = try sender(&random, seals: 6)
        let receiver = try TestReplica("receiver", in: directory)
        // The greeting, the offer, and three of the six runs.
        let broken = FaultyTransport(responder(sender), .losesRequest, after: 5)
        await #expect(throws: SyncError.self) {
            try await receiver.dataset().synchronize(with: broken)
        }
        let ranges = Recorder()
        _ = try await receiver.dataset().synchronize(
            with: ranges.transport(responder(sender)))
        let asked = ranges.requests.withLock { $0.filter { $0 == .segmentRange }.count }
        #expect(asked < 6, "asked for \(asked) ranges")
        try expectEqual([sender, receiver])
    }

    @Test func theSenderCompactsMeanwhile() async throws {
        for moment in 1..<8 {
            var random = TestSupport.SeededGenerator(Seed(UInt64(moment)))
            let directory = TemporaryDirectory()
            let test = BootstrapTests(directory: directory)
            let sender = try test.sender(&random, seals: 5)
            let receiver = try TestReplica("receiver", in: directory)
            let responder = responder(sender)
            let count = Mutex(0)
            let store = sender.store
            let transport = ScriptedTransport { request throws(SyncError) in
                let isDue = count.withLock {
                    $0 += 1
                    return $0 == moment
                }
                if isDue { try engine { () throws(StoreError) in _ = try store.compact() } }
                return responder.respond(to: request)
            }
            let result = try await receiver.dataset().synchronize(with: transport)
            #expect(result.adopted > 0, "at message \(moment)")
            try expectEqual([sender, receiver])
        }
    }

    @Test func aSenderThatNeverRestsIsPulledFromByPages() async throws {
        var random = TestSupport.SeededGenerator(Seed(4))
        let sender = try sender(&random)
        let receiver = try TestReplica("receiver", in: directory)
        let responder = responder(sender)
        let transport = ScriptedTransport { request throws(SyncError) in
            if MessageLabel.kind(of: request) == "segmentRange" {
                return try SyncMessage.segmentRangeAnswer(SegmentRangeAnswer(blocks: nil)).encoded()
            }
            return responder.respond(to: request)
        }
        let result = try await receiver.dataset().synchronize(with: transport)
        #expect(result.adopted == 0 && result.pulled > 1_000)
        try expectEqual([sender, receiver])
        let files = try Files.list(receiver.store.path)
        #expect(!files.contains { $0.hasSuffix(".seg") }, "\(files)")
    }

    @Test func otherwiseItGoesByPages() async throws {
        var random = TestSupport.SeededGenerator(Seed(5))
        let sender = try sender(&random)
        func adopted(
            _ name: String, bytesMin: Int = 0, _ prepare: (TestReplica) throws -> Void = { _ in }
        ) async throws -> Int {
            let receiver = try TestReplica(name, in: directory)
            try prepare(receiver)
            let result = try await receiver.dataset().synchronize(
                with: InMemoryTransport(responder(sender, bytesMin: bytesMin)))
            try expectEqual([sender, receiver], Comment(rawValue: name))
            return result.adopted
        }
        #expect(try await adopted("as it is") > 0)
        #expect(try await adopted("too little", bytesMin: 1 << 30) == 0)
        #expect(try await adopted("never", bytesMin: .max) == 0)
        #expect(try await adopted("number of an empty one") { _ = try $0.dataset("other") } > 0)
        #expect(
            try await adopted("number taken") {
                try $0.dataset("other").put("1", for: "its own")
                _ = try $0.dataset()
            } == 0)
        #expect(
            try await adopted("not empty") { try $0.dataset().put("here", for: "here first") } == 0)
        try sender.dataset().put([UInt8](repeating: 7, count: 5_000), for: Array("large".utf8))
        try sender.store.sealAll()
        #expect(try await adopted("a value apart") == 0)
    }

    @Test func whatIsOnlyInTheLogIsSealedFirst() async throws {
        let sender = try TestReplica("sender", in: directory)
        let dataset = try sender.dataset()
        for number in 0..<10_000 { try dataset.put("value", for: "key \(number)") }
        let receiver = try TestReplica("receiver", in: directory)
        let result = try await receiver.dataset().synchronize(
            with: InMemoryTransport(responder(sender)))
        #expect(result.adopted == 10_000)
        try expectEqual([sender, receiver])
    }

    @Test func severalDatasetsWhateverTheOrderOfTheirNumbers() async throws {
        var random = TestSupport.SeededGenerator(Seed(6))
        let sender = try sender(&random)
        for name in ["zebra", "apple", "mint"] {
            let dataset = try sender.dataset(name)
            for number in 0..<1_200 { try dataset.put("\(name) \(number)", for: "\(number)") }
        }
        try sender.store.sealAll()
        let receiver = try TestReplica("receiver", in: directory)
        let results = try await receiver.store.synchronize(
            with: InMemoryTransport(responder(sender)))
        #expect(results.map(\.dataset) == ["apple", "mint", "notes", "zebra"])
        #expect(results.allSatisfy { $0.adopted >= 1_000 }, "\(results.map(\.adopted))")
        for name in ["apple", "mint", "notes", "zebra"] {
            try expectEqual([sender, receiver], dataset: name)
        }
        try receiver.reopen()
        for name in ["apple", "mint", "notes", "zebra"] {
            try expectEqual([sender, receiver], dataset: name)
        }
    }

    @Test func itPassesThroughAChainOfReplicas() async throws {
        var random = TestSupport.SeededGenerator(Seed(7))
        let sender = try sender(&random)
        let middle = try TestReplica("middle", in: directory)
        let last = try TestReplica("last", in: directory)
        _ = try await middle.dataset().synchronize(with: InMemoryTransport(responder(sender)))
        for number in 0..<50 { try middle.dataset().put("of the middle", for: "key \(number)") }
        let result = try await last.dataset().synchronize(
            with: InMemoryTransport(responder(middle)))
        #expect(result.adopted > 1_000)
        try expectEqual([middle, last])
        try last.dataset().put("of the last", for: "key 1")
        _ = try await last.dataset().synchronize(with: InMemoryTransport(responder(sender)))
        _ = try await middle.dataset().synchronize(with: InMemoryTransport(responder(sender)))
        _ = try await last.dataset().synchronize(with: InMemoryTransport(responder(sender)))
        try expectEqual([sender, middle, last])
    }

    @Test func nothingOfOtherDatasetsIsOnTheWire() async throws {
        var random = TestSupport.SeededGenerator(Seed(8))
        let sender = try sender(&random)
        for name in ["aaa", "zzz"] {
            let dataset = try sender.dataset(name)
            for number in 0..<500 { try dataset.put("canary", for: "canary \(number)") }
        }
        try sender.store.compact()
        let receiver = try TestReplica("receiver", in: directory)
        let recorder = Recorder()
        let result = try await receiver.dataset().synchronize(
            with: recorder.transport(responder(sender)))
        #expect(result.adopted > 1_000)
        let wanted = Array("canary".utf8)
        for body in recorder.bodies.withLock({ $0 }) {
            let found = body.indices.contains {
                body[$0] == wanted[0] && body[$0...].starts(with: wanted)
            }
            #expect(!found, "a message of \(body.count) bytes")
        }
        // Nor would it have been by luck: the blocks are compressed, and so what they become is
        // looked at, too.
        #expect(
            try receiver.dataset("notes").records().collect().allSatisfy {
                !$0.keyText!.hasPrefix("canary")
            })
        #expect(try receiver.store.datasets().map(\.name) == ["notes"])
        try expectEqual([sender, receiver])
    }

    @Test("Offers and blocks that a peer has changed end in the right records", arguments: 0..<40)
    func hostilePeers(run: UInt64) async throws {
        var random = TestSupport.SeededGenerator(Seed(baseSeed + run))
        let sender = try sender(&random, writes: 1_500)
        let receiver = try TestReplica("receiver", in: directory)
        let responder = responder(sender)
        let state = Mutex(random)
        let transport = ScriptedTransport { request throws(SyncError) in
            let answer = try SyncMessage(MessageFrame.decoded(responder.respond(to: request)))
            return try state.withLock { random throws(SyncError) in
                try Self.spoiled(answer, &random).encoded()
            }
        }
        do {
            _ = try await receiver.dataset().synchronize(with: transport)
        } catch let error as SyncError {
            // What is no message, or an answer to another question, is told.
            #expect([.badMessage, .tooLarge].contains(error.code), "\(error)")
        }
        #expect(try receiver.store.verify().damages.isEmpty)
        _ = try await receiver.dataset().synchronize(with: InMemoryTransport(responder))
        let here = try Contents(receiver.dataset()).lines.map(\.key)
        let there = try Contents(sender.dataset()).lines.map(\.key)
        #expect(here == there, "seed \(baseSeed + run)")
        try receiver.store.compact()
        #expect(try receiver.store.verify().damages.isEmpty)
    }

    /// Changes one thing in an offer or in blocks; leaves all other answers alone.
    private static func spoiled(
        _ answer: SyncMessage, _ random: inout TestSupport.SeededGenerator
    ) -> SyncMessage {
        switch answer {
        case .segmentsAnswer(var answer):
            guard var offer = answer.offer, random.oneIn(2) else { return .segmentsAnswer(answer) }
            let number = [0, 1, 1 << 20, 1 << 40, UInt64.max][random.below(5)]
            switch random.below(12) {
            case 0: offer.dataset = UInt32(truncatingIfNeeded: number) | 1
            case 1: offer.expiredThrough = number
            case 2: offer.wipedTime = number
            case 3: offer.runs[0][0].number ^= 1
            case 4: offer.runs[0][0].entryCount = number
            case 5: offer.runs[0][0].blockCount = Int(number & 0xFFFF)
            case 6: offer.runs[0][0].byteCount = number
            case 7: offer.runs[0][0].tables.removeLast()
            case 8: offer.runs.reverse()
            case 9: offer.runs.append(offer.runs[0])
            case 10: offer.runs[0][0].identity ^= 1
            default: offer.runs[0][0].tables[random.below(4)] ^= 1
            }
            answer.offer = offer
            return .segmentsAnswer(answer)
        case .segmentRangeAnswer(var answer):
            guard var blocks = answer.blocks else { return .segmentRangeAnswer(answer) }
            switch random.below(6) {
            case 0: blocks.bytes[random.below(blocks.bytes.count)] ^= 1
            case 1: blocks.bytes.removeLast(1 + random.below(blocks.bytes.count))
            case 2: blocks.next += 1
            case 3: blocks.bytes += blocks.bytes
            case 4: blocks.next = Int(UInt32.max)
            default: break
            }
            answer.blocks = blocks
            return .segmentRangeAnswer(answer)
        default: return answer
        }
    }
}

extension BootstrapTests {
    init(directory: TemporaryDirectory) {
        self.directory = directory
    }
}

/// Keeps what passes.
private final class Recorder: Sendable {
    let requests = Mutex<[MessageKind]>([])
    /// Of both directions, decompressed.
    let bodies = Mutex<[[UInt8]]>([])

    func transport(_ responder: SyncResponder) -> ScriptedTransport {
        ScriptedTransport { [self] request throws(SyncError) in
            let answer = responder.respond(to: request)
            let (asked, told) = (
                try MessageFrame.decoded(request), try MessageFrame.decoded(answer)
            )
            requests.withLock { $0.append(MessageKind(rawValue: asked.kind) ?? .failure) }
            bodies.withLock { $0 += [asked.body, told.body] }
            return answer
        }
    }
}
