import Testing
import Tidemark

@testable import TidemarkSync

/// Many identities at one hub, two devices each, who all use the same names and keys: whatever they
/// do, in whatever order, each pair ends with the same, and with nothing that anybody else wrote.
struct NamespaceIsolationTests {
    private struct Device {
        let replica: TestReplica
        let owner: String
    }

    private let hub: TestReplica
    private let devices: [Device]
    private let names = ["notes", "x:notes", "notes.2"]

    init() throws {
        let directory = TemporaryDirectory()
        hub = try TestReplica("hub", in: directory)
        var devices: [Device] = []
        for owner in ["x:", "x:", "y:", "y:", "x-y:", "x-y:"] {
            let replica = try TestReplica("device \(devices.count)", in: directory)
            devices.append(Device(replica: replica, owner: owner))
        }
        self.devices = devices
    }

    private func exchange(_ device: Device) async -> SyncReport {
        var quota = SyncQuota()
        quota.datasetsMax = 100
        quota.recordsMax = 1_000
        let responder = SyncResponder(
            store: hub.store, namespace: DatasetNamespace(prefix: device.owner),
            limits: SyncResponder.Limits(segmentBytesMin: .max, quota: quota))
        return await device.replica.store.synchronizeEach(with: InMemoryTransport(responder))
    }

    /// Every value tells whose it is.
    private func expectOwnValues(in dataset: Dataset, of owner: String, _ seed: UInt64) throws {
        for record in try dataset.records().collect() {
            #expect(
                record.valueText?.hasPrefix("\(owner) ") == true,
                "seed \(seed): \(dataset.name) of \(owner)")
        }
    }

    @Test(arguments: 0..<3)
    func everybodyEndsWithItsOwn(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("everybodyEndsWithItsOwn: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        for step in 0..<300 {
            let device = devices[Int.random(in: 0..<devices.count, using: &random)]
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            let key = "key \(Int.random(in: 0..<6, using: &random))"
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1:
                let report = await exchange(device)
                #expect(report.isComplete, "seed \(seed), step \(step)")
            case 2:
                try device.replica.dataset(name).delete(key)
            case 3 where step.isMultiple(of: 5):
                try hub.dataset(device.owner + name).put("\(device.owner) hub \(step)", for: key)
            default:
                try device.replica.dataset(name).put("\(device.owner) \(step)", for: key)
            }
        }
        for _ in 0..<3 {
            for device in devices { _ = await exchange(device) }
        }
        for index in stride(from: 0, to: devices.count, by: 2) {
            let (one, other) = (devices[index], devices[index + 1])
            for name in names {
                let datasets = [
                    try one.replica.dataset(name), try other.replica.dataset(name),
                    try hub.dataset(one.owner + name),
                ]
                try expectEqual(datasets, "seed \(seed), \(one.owner)\(name)")
                for dataset in datasets { try expectOwnValues(in: dataset, of: one.owner, seed) }
            }
        }
        for name in try hub.store.datasetNames() {
            let isOwned = devices.contains { name.hasPrefix($0.owner) }
            #expect(isOwned, "seed \(seed): \(name)")
        }
    }
}
