import Tidemark

// A run may take several attempts, each with a report of its own, and tells of them as of one.
//
// - What was done adds up: records, conflicts, pages, bytes. An attempt goes on where the one
//   before ended, so nothing is done twice.
// - How things stand is what the last attempt found, as far as it came to look.

extension SyncReport {
    /// Adds a later attempt: its outcomes take the place of earlier ones of the same datasets, with
    /// what those had done before.
    mutating func takeIn(_ later: SyncReport) {
        peer = later.peer ?? peer
        error = later.error
        bytesSent += later.bytesSent
        bytesReceived += later.bytesReceived
        guard !datasets.isEmpty else {
            datasets = later.datasets
            return
        }
        var outcomes = Dictionary(
            datasets.map { ($0.dataset, $0) }, uniquingKeysWith: { first, _ in first })
        for outcome in later.datasets {
            outcomes[outcome.dataset] = outcome.following(outcomes[outcome.dataset])
        }
        datasets = outcomes.values.sorted { $0.dataset < $1.dataset }
    }

    /// Only what is about these datasets; nil for all.
    func narrowed(to names: Set<String>?) -> SyncReport {
        guard let names else { return self }
        var report = self
        report.datasets = datasets.filter { names.contains($0.dataset) }
        return report
    }
}

extension DatasetOutcome {
    fileprivate func following(_ earlier: DatasetOutcome?) -> DatasetOutcome {
        guard let before = earlier?.result else { return self }
        guard let result else {
            return DatasetOutcome(dataset: dataset, result: before, error: error)
        }
        return DatasetOutcome(
            dataset: dataset, result: result.following(before, isCutOff: error != nil),
            error: error)
    }
}

extension SyncResult {
    /// The same with what an earlier attempt had done.
    ///
    /// - Parameter isCutOff: whether this attempt ended before its time: what it did not come to
    ///   find is then as it was found before.
    func following(_ earlier: SyncResult, isCutOff: Bool) -> SyncResult {
        var total = self
        total.pulled += earlier.pulled
        total.adopted += earlier.adopted
        total.pushed += earlier.pushed
        total.conflicts += earlier.conflicts
        total.quarantined += earlier.quarantined
        total.overlooked += earlier.overlooked
        total.settled = Self.first(earlier.settled, settled)
        total.failed = Self.first(earlier.failed, failed)
        total.failedCount += earlier.failedCount
        total.pagesSent += earlier.pagesSent
        total.pagesReceived += earlier.pagesReceived
        total.bytesSent += earlier.bytesSent
        total.bytesReceived += earlier.bytesReceived
        total.attempts += earlier.attempts
        (total.reports, total.reportsLeftOut) = (earlier.reports, earlier.reportsLeftOut)
        for report in reports { total.note(report) }
        total.reportsLeftOut += reportsLeftOut
        if isCutOff, pendingCount == 0 {
            (total.pending, total.pendingCount) = (earlier.pending, earlier.pendingCount)
        }
        if remoteSyncCount == .zero, remoteReplica == earlier.remoteReplica {
            total.remoteSyncCount = earlier.remoteSyncCount
        }
        return total
    }

    private static func first<Item>(_ earlier: [Item], _ later: [Item]) -> [Item] {
        Array((earlier + later).prefix(SyncLimits.settlementsMax))
    }
}
