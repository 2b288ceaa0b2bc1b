import Testing
import Tidemark

@testable import TidemarkSync

/// What peers push that say of their writes whatever makes room for them, and that what they can
/// make grow has an end all the same.
struct HostileQuotaTests {
    private let hub: TestReplica
    private let peer = ReplicaID(high: 9, low: 9)

    init() throws { hub = try TestReplica("hub", in: TemporaryDirectory()) }

    /// A write of the peer's, so many seconds after 1970.
    private func record(
        _ key: String, _ value: String?, counter: UInt64, at seconds: UInt64 = 1
    ) -> Record {
        Record(
            key: Array(key.utf8), value: value.map { Array($0.utf8) },
            version: Version(
                dot: Dot(replica: peer, counter: counter), vector: VersionVector(),
                time: HybridTime(milliseconds: seconds * 1_000, counter: 0)),
            syncCount: 0, isDirty: false)
    }

    /// What a peer knows that has seen those replicas.
    private func knowledge(
        _ replicas: Range<UInt64> = 0..<0, isDeleted: Bool = true
    ) -> PeerKnowledge {
        PeerKnowledge(
            vector: VersionVector(
                replicas.map { Dot(replica: ReplicaID(high: 5, low: $0), counter: 1) }),
            syncCount: .zero,
            lifecycle: PeerLifecycle(
                isDeleted: isDeleted, wiped: VersionVector(),
                time: HybridTime(milliseconds: isDeleted ? 0 : 1_000, counter: 0),
                replica: isDeleted ? ReplicaID(high: 0, low: 0) : peer))
    }

    /// Returns the code of the failure; nil if the page was taken.
    private func push(
        _ records: [Record], to dataset: String = "notes", knowing knowledge: PeerKnowledge? = nil,
        _ change: (inout SyncQuota) -> Void = { _ in }
    ) throws -> String? {
        var quota = SyncQuota()
        change(&quota)
        let responder = SyncResponder(
            store: hub.store, namespace: DatasetNamespace(prefix: "x:"),
            limits: SyncResponder.Limits(quota: quota))
        let address = Address(from: peer, to: hub.store.replicaID, dataset: dataset)
        let page = RecordPage(
            records: records, through: 1, isLast: true,
            knowledge: knowledge ?? self.knowledge())
        let message = SyncMessage.push(
            PushRequest(address: address, since: .zero, acknowledged: .zero, page: page))
        let answer = responder.respond(to: try message.encoded())
        guard case .failure(let failure) = try SyncMessage(MessageFrame.decoded(answer)) else {
            return nil
        }
        return failure.code
    }

    /// Writes that are held are told apart by more than their dots, and so they are counted.
    @Test func heldWritesOfOneDotAreCountedEach() throws {
        let ahead = hub.store.latestBelieved.milliseconds / 1_000 + 1_000
        func hold(_ value: String) throws -> String? {
            try push([record("key", value, counter: 1, at: ahead)]) { $0.heldMax = 2 }
        }
        #expect(try hold("1") == nil)
        #expect(try hold("2") == nil)
        let third = try hold("3")
        #expect(third == "recordRefused")
        // What is held already takes no more room.
        #expect(try hold("2") == nil)
        #expect(try hub.dataset("x:notes").quarantined().count == 2)
    }

    /// What is in conflict with a record is not stored, and so makes no room for another one.
    @Test func whatIsNotReplacedMakesNoRoom() throws {
        try hub.dataset("x:notes").put(String(repeating: "1", count: 80), for: "first")
        let page = [
            record("first", "", counter: 1),
            record("second", String(repeating: "2", count: 80), counter: 2),
        ]
        let code = try push(page) { $0.bytesMax = 100 }
        #expect(code == "recordRefused")
        #expect(try hub.dataset("x:notes").text("second") == nil)
        // Nor does a deletion of what is live, for another live one.
        let other = try push([record("first", nil, counter: 1), record("b", "", counter: 2)]) {
            $0.recordsMax = 1
        }
        #expect(other == "recordRefused")
        #expect(try hub.dataset("x:notes").count() == 1)
    }

    /// A later write under a dot that is here takes the place of the earlier one, so it is counted.
    @Test func aDotThatIsUsedAgainIsCounted() throws {
        #expect(try push([record("key", "1", counter: 1)]) == nil)
        let large = record("key", String(repeating: "2", count: 200), counter: 1, at: 2)
        let code = try push([large]) { $0.bytesMax = 100 }
        #expect(code == "recordRefused")
        #expect(try hub.dataset("x:notes").text("key") == "1")
    }

    /// A dataset of which there are only deletions does not exist, and remembers them all the same.
    @Test func deletionsOfADeletedDatasetAreCounted() throws {
        func delete(_ keys: [String], from counter: UInt64) throws -> String? {
            let page = keys.enumerated().map { index, key in
                record(key, nil, counter: counter + UInt64(index))
            }
            return try push(page) { $0.tombstonesMax = 2 }
        }
        #expect(try delete(["a", "b"], from: 1) == nil)
        #expect(try hub.store.existingDataset("x:notes") == nil)
        #expect(try delete(["c"], from: 3) == "recordRefused")
        // What is known already takes no more room.
        #expect(try delete(["a", "b"], from: 1) == nil)
    }

    /// A page without records makes a dataset, too, if it says that there is one.
    @Test func emptyDatasetsAreCounted() throws {
        func make(_ name: String) throws -> String? {
            try push([], to: name, knowing: knowledge(isDeleted: false)) { $0.datasetsMax = 1 }
        }
        #expect(try make("one") == nil)
        #expect(try make("two") == "peerFailed")
        #expect(try hub.store.datasetNames(prefix: "x:") == ["x:one"])
        // That nothing is there makes none.
        let code = try push([], to: "three") { $0.datasetsMax = 1 }
        #expect(code == nil)
        #expect(try make("one") == nil)
    }

    /// What one request leaves out of its vectors another one brings, and a dataset remembers all.
    @Test func writersAreCountedOverRequests() throws {
        func meet(_ replicas: Range<UInt64>, batons: Range<UInt64> = 0..<0) throws -> String? {
            var knowledge = self.knowledge(replicas)
            knowledge.batons = batons.map {
                Baton(replica: ReplicaID(high: 6, low: $0), number: 1, random: 1)
            }
            return try push([], knowing: knowledge) { $0.writersMax = 4 }
        }
        #expect(try meet(0..<2, batons: 0..<1) == nil)
        #expect(try meet(2..<4) == "peerFailed")
        #expect(try meet(0..<2, batons: 1..<3) == "peerFailed")
        let vector = try hub.dataset("x:notes").knowledge().vector
        #expect(vector == knowledge(0..<2).vector)
        // Who is known is welcome, and so is another one for whom there is room.
        #expect(try meet(0..<2, batons: 0..<1) == nil)
        #expect(try meet(1..<3) == nil)
        #expect(try meet(3..<4) == "peerFailed")
    }
}
