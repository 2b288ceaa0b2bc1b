import Tidemark
import TidemarkSync

/// How the two services come to hold the same.
protocol Meeting {
    /// As a heading says it.
    var way: String { get }

    /// Exchanges both datasets until neither lacks anything.
    ///
    /// - Returns: what each service did, one after the other.
    func meet(
        _ north: Service, _ south: Service
    ) async throws -> [(service: Service, results: [SyncResult])]
}

/// Through a hub: the first service meets it twice, to have what the second brought there.
struct HubMeeting<Transport: SyncTransport>: Meeting {
    let transport: Transport

    var way: String { "through the hub" }

    func meet(
        _ north: Service, _ south: Service
    ) async throws -> [(service: Service, results: [SyncResult])] {
        var steps: [(service: Service, results: [SyncResult])] = []
        for service in [north, south, north] {
            var results: [SyncResult] = []
            for (dataset, options) in Service.settlements {
                results += try await service.store.synchronize(
                    with: transport, datasets: [dataset], options: options)
            }
            steps.append((service, results))
        }
        return steps
    }
}

/// By files that one hands to the other: no network, no third party.
struct BundleMeeting: Meeting {
    let directory: String

    var way: String { "by bundles, which are files" }

    func meet(
        _ north: Service, _ south: Service
    ) async throws -> [(service: Service, results: [SyncResult])] {
        var steps: [(service: Service, results: [SyncResult])] = []
        for (sender, receiver) in [(north, south), (south, north)] {
            var results: [SyncResult] = []
            for (dataset, options) in Service.settlements {
                let path = "\(directory)/\(sender.name)-\(dataset).bundle"
                _ = try sender.store.exportBundle(
                    of: dataset, to: path, for: receiver.store.replicaID)
                results.append(
                    try await receiver.store.importBundle(from: path, options: options))
            }
            steps.append((receiver, results))
        }
        return steps
    }
}
