import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What leaves a store is durable there: while a message is on its way its sender may lose its
/// power, and nothing that the message says of the sender becomes untrue.
///
///     a:  put ─▶ read a page ─▶ sync ─▶ push ─────────┐
///                                           ▲ the power may fail here
///     b:                                              └─▶ apply ─▶ sync ─▶ accepted
///
/// The stores acknowledge writes that are in memory only, so nothing is durable but what the
/// exchange makes so.
struct SendDurabilityTests {
    /// A store that promises nothing by itself, on a disk that can lose its power.
    final class Replica: Sendable {
        let disk: SimulatedStorage
        let store: Store

        private static let path = "/store"

        private static func options(_ bugs: PlantedBugs) -> StoreOptions {
            var options = StoreOptions(
                durability: .memory, segmentBytes: 1 << 20, compactsAutomatically: false)
            options.plantedBugs = bugs
            return options
        }

        init(_ seed: Seed, _ bugs: PlantedBugs = []) throws {
            disk = SimulatedStorage(seed: seed)
            store = try Store.open(at: Self.path, options: Self.options(bugs), storage: disk)
        }

        /// The store as it would come up if the power failed now, with nothing that was not synced.
        func afterPowerLoss() throws -> Store {
            var random = TestSupport.SeededGenerator(Seed(1))
            let remains = disk.afterPowerLoss(.nothing, using: &random)
            return try Store.open(at: Self.path, options: Self.options([]), storage: remains)
        }

        func dataset(_ name: String = "notes") throws -> Dataset { try store.dataset(name) }
    }

    /// Looks at the sender's disk whenever a message is on its way.
    final class Witness: SyncTransport {
        private let asker: Replica
        private let other: Replica
        private let responder: SyncResponder
        private let seen = Mutex<(findings: [String], kinds: Set<String>)>(([], []))

        init(
            from asker: Replica, to other: Replica,
            limits: SyncResponder.Limits = SyncResponder.Limits()
        ) {
            self.asker = asker
            self.other = other
            responder = SyncResponder(store: other.store, limits: limits)
        }

        /// What was said and would not have been true after a loss of power.
        var findings: [String] { seen.withLock { $0.findings } }

        /// Kinds of messages that were looked at.
        var kinds: Set<String> { seen.withLock { $0.kinds } }

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            let asked = try SyncMessage(MessageFrame.decoded(request))
            look(at: asked, about: asked.dataset, of: asker)
            let bytes = responder.respond(to: request)
            let answer = try SyncMessage(MessageFrame.decoded(bytes))
            look(at: answer, about: asked.dataset, of: other)
            return bytes
        }

        private func look(at message: SyncMessage, about dataset: String?, of sender: Replica) {
            do {
                let store = try sender.afterPowerLoss()
                let findings = try message.untrue(about: dataset, in: store)
                try store.close()
                seen.withLock { seen in
                    seen.findings += findings.map { "\(message.kind): \($0)" }
                    seen.kinds.insert("\(message.kind)")
                }
            } catch {
                Issue.record(error)
            }
        }
    }

    private func change(
        _ replica: Replica, _ random: inout SeededGenerator
    ) throws {
        let dataset = try replica.dataset(Bool.random(using: &random) ? "notes" : "plans")
        let key = "key \(Int.random(in: 0..<12, using: &random))"
        if Int.random(in: 0..<4, using: &random) == 0 {
            try dataset.delete(key)
        } else {
            try dataset.put("\(random.next())", for: key)
        }
    }

    @Test(arguments: 0..<4)
    func nothingLeavesThatThePowerCouldTakeBack(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("nothingLeavesThatThePowerCouldTakeBack: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let a = try Replica(Seed(random.next()))
        let b = try Replica(Seed(random.next()))
        let (fromA, fromB) = (Witness(from: a, to: b), Witness(from: b, to: a))
        for _ in 0..<8 {
            for _ in 0..<Int.random(in: 1..<8, using: &random) {
                try change(Bool.random(using: &random) ? a : b, &random)
            }
            var options = SyncOptions(
                policy: Bool.random(using: &random) ? .lastWriterWins : .keepLocal,
                pageRecordsMax: 3)
            if Bool.random(using: &random) { options.readsAheadFrom = 0 }
            if Bool.random(using: &random) {
                try await a.store.synchronize(with: fromA, options: options)
            } else {
                try await b.store.synchronize(with: fromB, options: options)
            }
        }
        try await a.store.synchronize(with: fromA)
        #expect(fromA.findings.isEmpty, "seed \(seed)")
        #expect(fromB.findings.isEmpty, "seed \(seed)")
        let expected: Set<String> = ["hello", "helloAnswer", "pullAnswer", "push", "pushAnswer"]
        #expect(fromA.kinds.union(fromB.kinds).isSuperset(of: expected), "seed \(seed)")
        for name in ["notes", "plans"] {
            #expect(try a.dataset(name).digest() == b.dataset(name).digest(), "seed \(seed)")
        }
    }

    /// Writes when messages have been answered.
    final class Writing: SyncTransport {
        private let witness: Witness
        private let dataset: Dataset
        private let count = Mutex(0)

        init(_ witness: Witness, _ dataset: Dataset) {
            self.witness = witness
            self.dataset = dataset
        }

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            let answer = try await witness.send(request)
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number < 40, number % 4 == 0 {
                do throws(StoreError) {
                    try dataset.put("written late", for: "late \(number)")
                } catch {
                    Issue.record(error)
                }
            }
            return answer
        }
    }

    /// Of a push of many pages those need no sync that hold nothing newer than the last one.
    @Test(arguments: [false, true])
    func pagesThatAreDurableLeaveWithoutASync(writesBetween: Bool) async throws {
        let a = try Replica(Seed(1))
        let b = try Replica(Seed(2))
        for number in 0..<120 { try a.dataset().put("\(number)", for: "key \(number)") }
        let syncCount = Mutex(0)
        a.disk.observe(includingReads: false) { call in
            guard [.sync, .syncMapping].contains(call.kind) else { return }
            syncCount.withLock { $0 += 1 }
        }
        let witness = Witness(from: a, to: b)
        var options = SyncOptions(pageRecordsMax: 3)
        options.readsAheadFrom = 0
        if writesBetween {
            try await a.store.synchronize(
                with: Writing(witness, a.dataset()), options: options)
        } else {
            try await a.store.synchronize(with: witness, options: options)
            // Of forty pages.
            let count = syncCount.withLock { $0 }
            #expect((2...20).contains(count), "\(count) syncs")
        }
        #expect(witness.kinds.contains("push"))
        #expect(witness.findings.isEmpty)
        try await a.store.synchronize(with: Witness(from: a, to: b))
        #expect(try a.dataset().digest() == b.dataset().digest())
    }

    /// A dataset that is taken over as it lies in sealed segments, and what was written behind it.
    @Test func whatIsTakenOverAsItLiesIsDurableThere() async throws {
        let a = try Replica(Seed(1))
        let b = try Replica(Seed(2))
        for number in 0..<1_500 { try b.dataset().put("\(number)", for: "key \(number)") }
        let witness = Witness(
            from: a, to: b, limits: SyncResponder.Limits(segmentBytesMin: 0))
        let results = try await a.store.synchronize(with: witness)
        #expect(results.first?.adopted ?? 0 > 1_000)
        #expect(witness.kinds.isSuperset(of: ["segmentsAnswer", "segmentRangeAnswer"]))
        #expect(witness.findings.isEmpty)
    }

    @Test func whatIsHandedOverAsItLiesIsDurableThere() async throws {
        let a = try Replica(Seed(1))
        let b = try Replica(Seed(2))
        for number in 0..<1_500 { try a.dataset().put("\(number)", for: "key \(number)") }
        let witness = Witness(from: a, to: b)
        var options = SyncOptions()
        options.segmentBytesMin = 0
        let results = try await a.store.synchronize(with: witness, options: options)
        #expect(results.first?.pushed == 1_500)
        #expect(witness.kinds.isSuperset(of: ["segmentsPush", "segmentRangePushAnswer"]))
        #expect(witness.findings.isEmpty)
    }

    /// The witness is not blind: it speaks up if either side leaves its sync out.
    @Test(arguments: [true, false])
    func theWitnessSeesASyncThatIsLeftOut(isAskers: Bool) async throws {
        let a = try Replica(Seed(1), isAskers ? .skipSyncBeforeSend : [])
        let b = try Replica(Seed(2), isAskers ? [] : .skipSyncBeforeSend)
        try a.dataset().put("1", for: "ours")
        try b.dataset().put("2", for: "theirs")
        let witness = Witness(from: a, to: b)
        try await a.store.synchronize(with: witness)
        let kinds = Set(witness.findings.compactMap { $0.split(separator: ":").first })
        #expect(kinds.contains(isAskers ? "push" : "pullAnswer"))
    }

    /// The same at the door to the operating system: between a write and the message that carries
    /// it, the disk is told to sync.
    @Test func theDiskIsSyncedBetweenTheWriteAndTheSend() async throws {
        let order = Mutex<[String]>([])
        func open(_ name: String) throws -> Store {
            let disk = SimulatedStorage(seed: Seed(3))
            disk.observe(includingReads: false) { call in
                guard [.sync, .syncMapping].contains(call.kind) else { return }
                order.withLock { $0.append("\(name) syncs") }
            }
            return try Store.open(
                at: "/store",
                options: StoreOptions(
                    durability: .memory, author: name, segmentBytes: 1 << 20,
                    compactsAutomatically: false),
                storage: disk)
        }
        let (a, b) = (try open("a"), try open("b"))
        try a.dataset("notes").put("1", for: "ours")
        try b.dataset("notes").put("2", for: "theirs")
        order.withLock { $0 = [] }
        let responder = SyncResponder(store: b)
        let transport = ScriptedTransport { request throws(SyncError) in
            let kind = MessageLabel.kind(of: request)
            order.withLock { $0.append("a sends \(kind)") }
            let answer = responder.respond(to: request)
            order.withLock { $0.append("b answers \(kind)") }
            return answer
        }
        try await a.synchronize(with: transport)
        let seen = order.withLock { $0 }
        let asked = try #require(seen.firstIndex(of: "a sends hello"))
        let answered = try #require(seen.firstIndex(of: "b answers hello"))
        let pushed = try #require(seen.firstIndex(of: "a sends push"))
        let accepted = try #require(seen.firstIndex(of: "b answers push"))
        #expect(seen[asked..<answered].contains("b syncs"), "\(seen)")
        #expect(seen[..<pushed].contains("a syncs"), "\(seen)")
        #expect(seen[pushed..<accepted].contains("b syncs"), "\(seen)")
    }
}

extension SyncMessage {
    /// The dataset that a question is about.
    fileprivate var dataset: String? {
        switch self {
        case .pull(let request): request.address.dataset
        case .push(let request): request.address.dataset
        case .segments(let request): request.address.dataset
        case .segmentRange(let request): request.address.dataset
        case .segmentsPush(let request): request.address.dataset
        case .segmentRangePush(let request): request.address.dataset
        default: nil
        }
    }

    /// What the message says of its sender that is not so in this store, which is the sender's.
    fileprivate func untrue(about dataset: String?, in store: Store) throws -> [String] {
        switch self {
        case .push(let push):
            let sender = try store.datasetForSync(push.address.dataset, creating: false)
            guard let sender else { return ["the dataset"] }
            let reached = try sender.checkpoint(for: push.address.to).pulledThrough
            let findings = push.acknowledged > reached ? ["what was pulled"] : []
            return try findings + sender.untrue(push.page)
        case .pullAnswer(let answer):
            let sender = try dataset.flatMap { try store.datasetForSync($0, creating: false) }
            return try sender?.untrue(answer.page) ?? ["the dataset"]
        case .pushAnswer(let answer):
            let sender = try dataset.flatMap { try store.datasetForSync($0, creating: false) }
            return try sender?.untrue(answer.knowledge) ?? ["the dataset"]
        case .helloAnswer(let answer):
            return try answer.datasets.flatMap { greeting -> [String] in
                guard let knowledge = greeting.knowledge else { return [] }
                let sender = try store.datasetForSync(greeting.name, creating: false)
                return try sender?.untrue(knowledge) ?? ["the dataset"]
            }
        case .segmentsAnswer(let answer):
            guard let offer = answer.offer else { return [] }
            let sender = try dataset.flatMap { try store.datasetForSync($0, creating: false) }
            var knowledge = PeerKnowledge(offer.knowledge)
            knowledge.batons = answer.batons
            return try sender?.untrue(knowledge) ?? ["the dataset"]
        case .segmentsPush(let push):
            let sender = try store.datasetForSync(push.address.dataset, creating: false)
            var knowledge = PeerKnowledge(push.offer.knowledge)
            knowledge.batons = push.batons
            return try sender?.untrue(knowledge) ?? ["the dataset"]
        case .segmentRangePushAnswer(.installed(_, let knowledge)):
            let sender = try dataset.flatMap { try store.datasetForSync($0, creating: false) }
            return try sender?.untrue(knowledge) ?? ["the dataset"]
        case .segmentRangeAnswer(let answer):
            // However the segments lie by then, their records are there.
            guard answer.blocks != nil else { return [] }
            let sender = try dataset.flatMap { try store.existingDataset($0) }
            return try sender?.records(limit: 1).next() == nil ? ["what is sealed"] : []
        default:
            // Nothing that anybody would act upon.
            return []
        }
    }
}

extension Dataset {
    /// What a sender said that it knows and, by this dataset, does not.
    fileprivate func untrue(_ knowledge: PeerKnowledge) throws -> [String] {
        var findings: [String] = []
        if !(try vector.covers(knowledge.vector)) { findings.append("what was seen") }
        if !Set(try BatonBook(self).batons).isSuperset(of: knowledge.batons) {
            findings.append("batons")
        }
        return findings
    }

    /// The same, and records that it gave out and does not have, nor anything later of their keys.
    fileprivate func untrue(_ page: RecordPage) throws -> [String] {
        var findings = try untrue(page.knowledge)
        for record in page.records {
            let stored = try storedRecord(for: record.key)
            let isThere =
                stored?.version.dot == record.version.dot && stored?.value == record.value
            let isOutlived = stored?.version.vector.contains(record.version.dot) ?? false
            if !isThere, !isOutlived { findings.append("the record \(record.keyText ?? "")") }
        }
        return findings
    }
}
