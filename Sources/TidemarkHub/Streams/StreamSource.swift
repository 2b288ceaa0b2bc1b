import Tidemark
import TidemarkSync

/// Why nothing can be delivered.
struct NoStream: Error, CustomStringConvertible {
    let pool: PoolID

    var description: String {
        "the hub's settings name no stream for pool \(pool); name one, and start the hub anew"
    }
}

/// What waits for the stream of a pool. Each dataset is a lane.
struct StreamSource: DeliverySource {
    let pool: PoolID
    let book: PoolBook
    let threads: HubThreads
    let pushes: OpenPushes
    let meter: OutboxMeter
    let clock: any SyncEnvironment

    func lanes(limit: Int) async throws -> [String] {
        let (pool, meter) = (pool, meter)
        return try await threads.read { store in
            let lanes = try Outbox.datasets(of: pool, limit: limit, in: store)
            if !meter.isMeasured(pool) {
                meter.set(try Outbox.size(of: pool, in: store), of: pool)
            }
            return lanes
        }
    }

    func deliverNext(in dataset: String) async throws -> Bool {
        guard let next = try await next(of: dataset) else { return false }
        if let document = next.document {
            // What waits was acknowledged, so it is delivered even if the stream was turned off.
            guard let target = book.behavior(of: pool).stream else { throw NoStream(pool: pool) }
            // What is told must not be taken back by a power cut, nor by a sync that fails.
            try await threads.write { store in try store.sync() }
            let name = next.name
            // A file or pipe that blocks must not keep the hub from ending.
            try await TimeLimit.unlessCancelled {
                try await target.deliver(document, delivery: name)
            }
        }
        let (pool, meter) = (pool, meter)
        try await threads.write { store in
            if let rest = next.rest { meter.add(rest.bytes.count, of: pool) }
            try Outbox.remove(next.entry, replacedBy: next.rest, in: store)
            meter.subtract(next.entry.key.bytes.count + next.entry.document.count, of: pool)
        }
        return true
    }

    private struct Next: Sendable {
        let entry: Outbox.Entry
        /// nil if it turned out that there is nothing to tell.
        let document: [UInt8]?
        /// Of the delivery.
        let name: String
        /// What is left to tell after it.
        var rest: Outbox.Key?
    }

    private func next(of dataset: String) async throws -> Next? {
        let (pool, pushes, now) = (pool, pushes, clock.now())
        return try await threads.read { store -> Next? in
            guard let entry = try Outbox.first(of: pool, dataset, in: store) else { return nil }
            let key = entry.key
            switch key.kind {
            case .update:
                return Next(
                    entry: entry, document: entry.document, name: "\(dataset)/\(key.position)")
            case .span:
                // As long as a replica is about to push, what it pushes may not be here yet. Looked
                // at before the records: so what came before it was over is among them.
                guard !pushes.isOpen(dataset) else { return nil }
                let span = try StreamSpan(key, now: now, in: store)
                let rest = Outbox.Key(pool, dataset, position: span.through, .span)
                return Next(
                    entry: entry, document: span.document,
                    name: "\(dataset)/\(key.position)-\(span.through)",
                    rest: span.isLast ? nil : rest)
            }
        }
    }
}
