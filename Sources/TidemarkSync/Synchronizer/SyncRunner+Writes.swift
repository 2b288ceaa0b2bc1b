import Tidemark

// Changes here are handed over soon after they were made: those of a little while together, and
// only where the peer is not known to have everything, so that what came from the peer is not sent
// back to it. What only somebody's word can bring further (a conflict that waits, a record that
// failed) is not tried again by itself: it would hold up what is written elsewhere.

extension SyncRunner {
    /// Until the task is cancelled or the store is closed.
    func follow(
        _ changes: ChangedDatasets, after delay: Duration, _ queue: RunQueue
    ) async {
        var due: Set<String> = []
        // Counts of datasets of which a run brings no more until somebody changes them: what an
        // exchange itself notes is no such change.
        var resting: [String: SyncCount] = [:]
        var failures = 0
        while !Task.isCancelled {
            do throws(SyncError) {
                if failures == 0 {
                    let changed = await changes.next()
                    guard !changed.isEmpty else { return }
                    due = try lacking(among: Set(changed), but: resting)
                    guard !due.isEmpty else { continue }
                }
                let wait =
                    failures == 0
                    ? delay : options.backOff.delay(after: failures, random: environment.random())
                try await pause(wait)
                try await untilConnected()
                due.formUnion(changes.takeAll())
                due = try lacking(among: due, but: resting)
                if !due.isEmpty {
                    // Before the run: what is written while it goes on may not have left with it.
                    let counts = try self.counts(of: due)
                    let outcome = await queue.runInBackground(due)
                    if case .success(let report) = outcome {
                        for one in report.datasets {
                            let rests = !one.isComplete && isAtItsEnd(one)
                            resting[one.dataset] = rests ? counts[one.dataset] : nil
                        }
                    }
                    due = incomplete(due, outcome)
                }
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

    /// Those of which a run did not come to its end, and another one may.
    private func incomplete(_ names: Set<String>, _ outcome: RunQueue.Outcome) -> Set<String> {
        guard case .success(let report) = outcome else { return names }
        return names.subtracting(report.datasets.filter(isAtItsEnd).map(\.dataset))
    }

    /// Whether to repeat the exchange would bring no more: it is complete, or what it lacks waits
    /// for somebody to settle a conflict or to do something about a record that failed. That is a
    /// change here, which is followed as any other.
    private func isAtItsEnd(_ outcome: DatasetOutcome) -> Bool {
        let lacksOnlyFailed = outcome.result?.lacksOnlyFailed ?? false
        guard let error = outcome.error else { return outcome.isComplete || lacksOnlyFailed }
        switch error.code {
        case .conflictPending: return true
        case .recordRefused, .tooLarge:
            // The bound to the records of an exchange may have ended it, too.
            return lacksOnlyFailed || options.exchange.recordsPerRunMax == nil
        default: return false
        }
    }

    private func counts(of names: Set<String>) throws(SyncError) -> [String: SyncCount] {
        var counts: [String: SyncCount] = [:]
        for name in names {
            counts[name] = try engine(name) { () throws(StoreError) in
                try store.datasetForSync(name, creating: false)?.knowledge().syncCount
            }
        }
        return counts
    }

    /// Those of which the peer is not known to have seen everything, and those that are deleted
    /// here: nobody keeps account of who knows that.
    ///
    /// - Parameter resting: counts of those that are left out unless they have changed since, or a
    ///   record that failed is to be tried again.
    private func lacking(
        among names: Set<String>, but resting: [String: SyncCount]
    ) throws(SyncError) -> Set<String> {
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
                if !isDeleted, resting[name] == knowledge.syncCount { return false }
                let known = try dataset.checkpoint(for: peer).vector
                return isDeleted || !known.covers(knowledge.vector)
            }
            if lacks { lacking.insert(name) }
        }
        return lacking
    }
}
