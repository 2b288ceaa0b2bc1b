import Tidemark

// Answers to whoever has no checkpoint in common with this store and looks for what differs.
//
// Nothing is kept between requests: each range that is asked about is summed over as it is now. The
// asker is noted as a peer before it is told anything, so that from then on no deletion is
// forgotten of which it would have to be told, and what is told is durable before it leaves, since
// "equal" will stand in a checkpoint.

extension SyncResponder {
    func answer(to request: ReconcileRequest) throws(SyncError) -> ReconcileAnswer {
        let dataset = try dataset(asked: request.address, by: request.asker)
        return try engine(dataset.name) { () throws(StoreError) in
            try meet(request.address.from, dataset)
            // No record that is held is summed over, and no page of a search brings it.
            let claim = try dataset.vectorWithoutHeld()
            let sums = try dataset.recordSums(forgotten: request.asker.forgotten)
            var findings: [RangeFinding] = []
            var bytes = 0
            for claim in request.ranges {
                let finding = try RangeFinding(claim, by: sums)
                bytes += finding.byteCount
                guard findings.isEmpty || bytes <= SyncLimits.comparedBytesMax else { break }
                findings.append(finding)
            }
            let isRemembered = request.address.from != .nobody
            var told = try dataset.told(sums.knowledge, isDrawing: isRemembered)
            told.vector = claim
            if isRemembered { try store.syncBeforeSending() }
            return ReconcileAnswer(knowledge: told, findings: findings)
        }
    }

    func answer(to request: FetchRequest) throws(SyncError) -> FetchAnswer {
        let dataset = try dataset(asked: request.address, by: request.asker)
        return try engine(dataset.name) { () throws(StoreError) in
            try meet(request.address.from, dataset)
            let wanted = request.keys.prefix(
                try dataset.recordsPerPage(atMost: limits.pageRecordsMax))
            let (page, lookedAt) = try dataset.writtenPage(
                of: Array(wanted), bytesMax: min(max(1, request.bytesMax), limits.pageBytesMax),
                after: [])
            let isRemembered = request.address.from != .nobody
            let told = try dataset.told(page, isDrawing: isRemembered)
            if isRemembered { try store.syncBeforeSending() }
            return FetchAnswer(lookedAt: lookedAt, page: told)
        }
    }

    private func dataset(
        asked address: Address, by asker: AskerClaims
    ) throws(SyncError) -> Dataset {
        try check(address)
        let dataset = try wholeDataset(address.dataset, creating: false)
        if address.from != .nobody {
            try checkForks(asker.vector, asker.batons, known: asker.disputed, dataset, address)
        }
        return dataset
    }

    /// Remembers that there is the asker, before it has anything.
    func meet(_ asker: ReplicaID, _ dataset: Dataset) throws(StoreError) {
        guard asker != .nobody, !store.options.isReadOnly else { return }
        try dataset.remember(try dataset.checkpoint(for: asker), of: asker)
    }
}
