import Tidemark

// Changes here are handed over soon after they were made: those of a little while together, and
// only where the peer is not known to have everything, so that what came from the peer is not sent
// back to it.

extension SyncRunner {
    /// Until the task is cancelled or the store is closed.
    func follow(
        _ changes: ChangedDatasets, after delay: Duration, _ queue: RunQueue
    ) async {
        var due: Set<String> = []
        var failures = 0
        while !Task.isCancelled {
            do throws(SyncError) {
                if failures == 0 {
                    let changed = await changes.next()
                    guard !changed.isEmpty else { return }
                    due = try lacking(among: Set(changed))
                    guard !due.isEmpty else { continue }
                }
                let wait =
                    failures == 0
                    ? delay : options.backOff.delay(after: failures, random: environment.random())
                try await pause(wait)
                try await untilConnected()
                due.formUnion(changes.takeAll())
                due = try lacking(among: due)
                if !due.isEmpty { due = incomplete(due, await queue.runInBackground(due)) }
                failures = due.isEmpty ? 0 : failures + 1
            } catch {
                guard !Task.isCancelled else { return }
                failures += 1
                events.send(.backgroundFailure(error))
            }
        }
    }

    /// At least a millisecond: there may be no other await in between.
    private func pause(_ duration: Duration) async throws(SyncError) {
        do throws(CancellationError) {
            try await environment.sleep(for: max(duration, .milliseconds(1)))
        } catch {
            throw .cancelled()
        }
    }

    /// Those of which a run did not come to its end.
    private func incomplete(_ names: Set<String>, _ outcome: RunQueue.Outcome) -> Set<String> {
        guard case .success(let report) = outcome else { return names }
        return names.subtracting(report.datasets.lazy.filter(\.isComplete).map(\.dataset))
    }

    /// Those of which the peer is not known to have seen everything, and those that are deleted
    /// here: nobody keeps account of who knows that.
    private func lacking(among names: Set<String>) throws(SyncError) -> Set<String> {
        guard let peer = status.peer else { return names }
        var lacking: Set<String> = []
        for name in names {
            let lacks = try engine(name) { () throws(StoreError) in
                guard let dataset = try store.datasetForSync(name, creating: false) else {
                    return false
                }
                let knowledge = try dataset.knowledge()
                // What nobody has made yet is not deleted.
                let isDeleted = knowledge.lifecycle.isDeleted && knowledge.lifecycle.time != .zero
                let known = try dataset.checkpoint(for: peer).vector
                return isDeleted || !known.covers(knowledge.vector)
            }
            if lacks { lacking.insert(name) }
        }
        return lacking
    }
}
