import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What was moved out of a dataset at the hub is with an asker before the asker hears that it is
/// gone from there. A hub merges "old" into "profile"; a device has "old" alone:
///
///     device  "old": a b c    hub  both
///     device  "old": a b c    hub  "profile": a b c
///     device  both                          the device asks for "profile" first
///     device  "profile": a b c
struct MovedAtThePeerTests {
    let hub: TestReplica
    let device: TestReplica
    let other: TestReplica

    private static let keys = ["a", "b", "c"]
    private static let options = SyncOptions(onDatasetDeleted: .discardLocal)

    init() throws { (hub, device, other) = try TestReplica.three() }

    /// Everyone has the same in "old".
    private func share() async throws {
        for key in Self.keys { try hub.dataset("old").put("of \(key)", for: key) }
        for one in [device, other] {
            try await one.dataset("old").synchronize(with: hub.transport)
        }
    }

    private func exchange(
        _ replica: TestReplica, with transport: any SyncTransport
    ) async throws {
        try await replica.store.synchronize(with: transport, options: Self.options)
    }

    private func merge(at replica: TestReplica) async throws {
        let result = try await replica.store.mergeDataset("old", into: "profile", by: .keepLocal)
        #expect(result.isRetired && result.moved == Self.keys.count)
    }

    /// A replica to be asked, while another one must have each record all the time.
    private func watched(
        _ asked: TestReplica, having all: TestReplica,
        act: @escaping @Sendable (InterposedTransport.Point) async throws -> Void = { _ in }
    ) -> InterposedTransport {
        let store = all.store
        let keys = Self.keys
        return InterposedTransport(SyncResponder(store: asked.store)) { point in
            for key in keys {
                let former = try? store.existingDataset("old")?.text(key)
                let present = try? store.existingDataset("profile")?.text(key)
                #expect(former == "of \(key)" || present == "of \(key)", "\(point)")
            }
            try await act(point)
        }
    }

    private func expectMoved(_ replica: TestReplica) throws {
        #expect(try replica.store.existingDataset("old") == nil)
        for key in Self.keys { #expect(try replica.dataset("profile").text(key) == "of \(key)") }
    }

    @Test func anAskerHasTheMovedBeforeItHearsThatItIsGone() async throws {
        try await share()
        try await merge(at: hub)
        let result = try await device.dataset("old").synchronize(
            with: watched(hub, having: device), options: Self.options)
        #expect(result.isComplete)
        try expectMoved(device)
        // Nothing new: nothing but a greeting is asked.
        let idle = InterposedTransport(SyncResponder(store: hub.store)) { _ in }
        let again = try device.store.datasetForSync("old", creating: false)
        try await again?.synchronize(with: idle)
        #expect(idle.messageCount == 1)
    }

    @Test func aPartOfTheMovedIsEnoughForOneThatKeepsAPart() async throws {
        try await share()
        try await merge(at: hub)
        try device.dataset("profile").setSyncScope(.prefix("a"))
        for _ in 0..<3 { try await exchange(device, with: hub.transport) }
        #expect(try device.store.existingDataset("old") == nil)
        #expect(try device.dataset("profile").keys().collect().count == 1)
    }

    /// The hub that is asked has the records and the deletions from another one.
    @Test func whatIsAtSecondHandComesInTheSameOrder() async throws {
        try await share()
        try await merge(at: other)
        for _ in 0..<2 { try await exchange(other, with: hub.transport) }
        try expectMoved(hub)
        try await device.dataset("old").synchronize(
            with: watched(hub, having: device), options: Self.options)
        try expectMoved(device)
    }

    /// One that had them from a hub hands them over in the order in which it got them.
    @Test func whoHeardOfItHandsItOnInTheSameOrder() async throws {
        try await share()
        try await merge(at: hub)
        try await exchange(other, with: hub.transport)
        try expectMoved(other)
        let old = try other.store.datasetForSync("old", creating: false)
        let waiting = try await old?.synchronize(with: watched(device, having: device))
        #expect(waiting?.isComplete == false)
        #expect(try device.dataset("old").count() == Self.keys.count)
        try await other.dataset("profile").synchronize(with: watched(device, having: device))
        try await old?.synchronize(with: watched(device, having: device))
        try expectMoved(device)
    }

    /// Records go while the device is being told of what was there before.
    @Test(arguments: ["pull", "reconcile", "fetch"], InterposedTransport.Moment.allCases)
    func whatIsMovedMeanwhileIsNotTold(
        _ kind: String, _ moment: InterposedTransport.Moment
    ) async throws {
        try await share()
        for number in 0..<40 { try hub.dataset("old").put("more", for: "more \(number)") }
        let asked = hub.store
        let transport = watched(hub, having: device) { point in
            guard point.kind == kind, point.numberOfKind == 1, point.moment == moment else {
                return
            }
            _ = try await asked.mergeDataset("old", into: "profile", by: .keepLocal)
        }
        for _ in 0..<3 {
            let old = try device.store.datasetForSync("old", creating: false)
            try await old?.synchronize(
                with: transport,
                options: SyncOptions(pageRecordsMax: 3, onDatasetDeleted: .discardLocal))
        }
        // Unless the exchange had no such point, all has gone by now.
        if try hub.store.existingDataset("old") != nil {
            _ = try await asked.mergeDataset("old", into: "profile", by: .keepLocal)
        }
        try await exchange(device, with: watched(hub, having: device))
        try expectMoved(device)
    }

    @Test func aDatasetThatWasNeverExchangedIsNotDrawnOut() async throws {
        try await share()
        try await merge(at: hub)
        try device.dataset("profile").put("a secret", for: "secret")
        let error = await #expect(throws: SyncError.self) {
            try await device.dataset("old").synchronize(
                with: hub.transport, options: Self.options)
        }
        #expect(error?.code == .recordsMoved)
        #expect(error?.message.contains("profile") == true)
        #expect(try device.dataset("old").count() == Self.keys.count)
        #expect(try hub.dataset("profile").text("secret") == nil)
        // Who exchanges all of them exchanges that one anyway.
        let report = await device.store.synchronizeEach(
            with: hub.transport, options: Self.options)
        #expect(report.error == nil && report.datasets.allSatisfy { $0.error == nil })
        try expectMoved(device)
        #expect(try hub.dataset("profile").text("secret") == "a secret")
    }

    /// Of two datasets none waits for the other.
    @Test func whatGoesInACircleIsExchanged() async throws {
        try await share()
        try await merge(at: hub)
        _ = try await hub.store.mergeDataset("profile", into: "old", by: .keepLocal)
        _ = try await hub.store.mergeDataset("old", into: "attic", by: .keepLocal)
        _ = try await hub.store.mergeDataset("attic", into: "profile", by: .keepLocal)
        for replica in [device, other, device] {
            try await exchange(replica, with: hub.transport)
        }
        for replica in [device, other] {
            try expectEqual([hub, replica], dataset: "profile")
            try expectMoved(replica)
        }
    }

    /// What is refused of the moved stays where it was.
    @Test func whatIsLeftOutOfTheMovedHoldsUpTheDeletion() async throws {
        try await share()
        try await merge(at: hub)
        let gate = RecordGate(refusing: { $0.keyText == "c" && $0.value != nil })
        var options = Self.options
        options.validate = { record in try gate.check(record) }
        let result = try await device.dataset("old").synchronize(
            with: watched(hub, having: device), options: options)
        #expect(!result.isComplete)
        #expect(try device.dataset("old").text("c") == "of c")
        gate.open()
        try device.dataset("profile").retryFailedRecords()
        try await device.dataset("old").synchronize(with: hub.transport, options: options)
        try expectMoved(device)
    }
}
