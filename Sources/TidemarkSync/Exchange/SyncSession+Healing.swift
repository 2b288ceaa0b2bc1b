import Tidemark

// Brings back the records that a damaged block hides, from a peer that has seen all that was seen
// here. Nothing is compared: whatever the block held, the peer has it or something that came after
// it, and that is stored as it is.
//
//   keys of the range that are hidden here ─┐
//   keys of the range that the peer has ────┴─▶ those that are hidden ─▶ their records ─▶ stored
//
// The peer is asked for its keys by the messages of a search (`DifferenceSearch`), in which the
// asker claims to have nothing of the range, and for the records as after one.
//
// What has been seen does not change: no vector is joined and no position moves. A record that the
// peer has changed since comes under its new version, as it would with the first pages of a pull.
//
// Deletions may be forgotten on either side. A peer that has seen all that was seen here has heard
// of every deletion that was forgotten here, so nothing that it has is dead; a tombstone of it that
// counts as forgotten here goes on doing so. Of a key whose deletion the peer has forgotten it has
// nothing, and nobody can tell that from a key that it ought to know: so the block stays.

extension SyncSession {
    /// Restores what pieces of this dataset hide, and notes of each whether all of it came.
    func restore(
        _ indices: [Int], of survey: DamageSurvey, _ work: inout HealingWork
    ) async throws(SyncError) {
        let isPart = try engine(dataset.name) { () throws(StoreError) in
            try PartBook.isPart(dataset)
        }
        guard !isPart else { return work.leave(indices, .isPart) }
        // Before the peer is asked anything: what is written from now on is not damaged.
        let (seen, lifecycle) = try engine(dataset.name) { () throws(StoreError) in
            (try dataset.reachedVector(), try dataset.knowledge().lifecycle)
        }
        let greeting = try await greet()
        let isForked = try noteFork(greeting?.knowledge)
        peerDisputed = Set(greeting?.disputed ?? [])
        guard let remote = greeting?.knowledge else {
            return work.leave(indices, .peerLacksDataset)
        }
        guard !isForked, doubted.isEmpty, peerDisputed.isEmpty else {
            return work.leave(indices, .isDisputed)
        }
        guard lifecycle.isDeleted == remote.lifecycle.isDeleted,
            lifecycle.wiped == remote.lifecycle.wiped
        else { return work.leave(indices, .isDeletedOnOneSide) }
        guard remote.vector.covers(seen) else {
            let lacking = seen.dots.filter { $0.counter > remote.vector[$0.replica] }
            return work.leave(indices, .peerIsBehind, lacking: VersionVector(lacking))
        }
        for index in indices {
            try await restore(index, of: survey, remote, &work)
        }
    }

    /// - Parameter remote: what the peer said when it was found to have seen enough.
    private func restore(
        _ index: Int, of survey: DamageSurvey, _ remote: PeerKnowledge, _ work: inout HealingWork
    ) async throws(SyncError) {
        let piece = survey.pieces[index]
        let readable = try engine(dataset.name) { () throws(StoreError) in
            try dataset.examineReadable(of: piece, in: survey)
        }
        // Of these something older can be read, which must not come to count.
        var unknown = Set(readable.keys)
        var places = readable.places
        var wanted: [[UInt8]] = []
        var due = [piece.keys][...]
        var asked = 0
        while !due.isEmpty {
            let ranges = Array(due.prefix(Self.rangesAtOnce))
            asked += ranges.count
            guard asked <= SyncLimits.searchedRangesMax else {
                throw .badMessage("the peer cuts a range into parts without end")
            }
            let findings = try await findings(in: ranges, remote)
            var parts: [KeyRange] = []
            for (finding, range) in zip(findings, ranges) {
                switch finding {
                case .equal: continue
                case .parts(let found): parts += found.ranges(of: range)
                case .records(let marks):
                    let keys = marks.map(\.key)
                    let hidden = try engine(dataset.name) { () throws(StoreError) in
                        try dataset.examine(keys, of: piece, in: survey)
                    }
                    wanted += hidden.keys
                    places.formUnion(hidden.places)
                    unknown.subtract(keys)
                }
            }
            parts += due.dropFirst(findings.count)
            due = parts[...]
        }
        let isWhole = try await fetch(wanted, for: piece, of: survey, remote)
        work.places[index] = places
        guard isWhole, unknown.isEmpty else { return work.leave([index], .keysUnknownToPeer) }
        work.restored.insert(index)
    }

    /// Ranges that are asked for at once: few, since each answer may list a thousand keys.
    private static let rangesAtOnce = 16

    /// What the peer has in ranges that follow on one another, for the first of them.
    private func findings(
        in ranges: [KeyRange], _ remote: PeerKnowledge
    ) async throws(SyncError) -> [RangeFinding] {
        let request = ReconcileRequest(
            address: address, asker: try claims(),
            ranges: ranges.map { RangeClaim(range: $0, sum: RecordsSum()) })
        let answer = try await counted { connection, traffic throws(SyncError) in
            try await connection.reconcile(request, &traffic)
        }
        try check(answer.knowledge, still: remote)
        return answer.findings
    }

    /// Stores the peer's records of some keys.
    ///
    /// - Parameter keys: in their order.
    /// - Returns: whether there was one of each.
    private func fetch(
        _ keys: [[UInt8]], for piece: DamageSurvey.Piece, of survey: DamageSurvey,
        _ remote: PeerKnowledge
    ) async throws(SyncError) -> Bool {
        var left = keys[...]
        var isWhole = true
        while !left.isEmpty {
            let wanted = Self.fitting(left, countMax: options.pageRecordsMax)
            let request = FetchRequest(
                address: address, asker: try claims(), keys: wanted,
                bytesMax: options.pageBytesMax)
            let answer = try await counted { connection, traffic throws(SyncError) in
                try await connection.fetch(request, &traffic)
            }
            try check(answer.page.knowledge, still: remote)
            let records = answer.page.records
            for record in records {
                guard let refusal = dataset.refusalByStore(of: record) else { continue }
                throw SyncError(
                    .recordRefused, refusal.message, key: record.key, storeError: refusal)
            }
            recordsRestored += try engine(dataset.name) { () throws(StoreError) in
                try dataset.restore(records, of: piece, in: survey)
            }
            isWhole = isWhole && records.count == answer.lookedAt
            left = left.dropFirst(answer.lookedAt)
        }
        return isWhole
    }
}

extension [RangePart] {
    /// The ranges of parts of a range that hold anything, in their order.
    fileprivate func ranges(of range: KeyRange) -> [KeyRange] {
        var ranges: [KeyRange] = []
        var lowerBound = range.lowerBound
        for part in self {
            let upperBound = part.upperBound ?? range.upperBound
            if part.sum.count > 0 {
                ranges.append(KeyRange(from: lowerBound, upTo: upperBound))
            }
            lowerBound = upperBound
        }
        return ranges
    }
}
