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
        doubts.take(greeting)
        guard let remote = greeting?.knowledge else {
            return work.leave(indices, .peerLacksDataset)
        }
        guard !isForked, doubts.isEmpty else {
            return work.leave(indices, .isDisputed)
        }
        guard lifecycle.isDeleted == remote.lifecycle.isDeleted,
            lifecycle.wiped == remote.lifecycle.wiped
        else { return work.leave(indices, .isDeletedOnOneSide) }
        var healer = Healer(greeted: remote, seen: seen)
        var rest = indices[...]
        while healer.lacking.isEmpty, let index = rest.first {
            try await restore(index, of: survey, &healer, &work)
            if healer.lacking.isEmpty { rest.removeFirst() }
        }
        work.leave(Array(rest), .peerIsBehind, lacking: healer.lacking)
    }

    /// Does nothing if the peer turns out to lack something.
    private func restore(
        _ index: Int, of survey: DamageSurvey, _ healer: inout Healer, _ work: inout HealingWork
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
            let findings = try await findings(in: ranges, &healer)
            guard healer.lacking.isEmpty else { return }
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
        var isWhole = true
        try await fetch(wanted, still: healer.agreed) { answer throws(SyncError) in
            let records = answer.page.records
            for record in records {
                guard let refusal = dataset.refusalByStore(of: record) else { continue }
                throw SyncError(
                    .recordRefused, refusal.message, key: record.key, storeError: refusal)
            }
            tally.recordsRestored += try engine(dataset.name) { () throws(StoreError) in
                try dataset.restore(records, of: piece, in: survey)
            }
            isWhole = isWhole && records.count == answer.lookedAt
        }
        work.places[index] = places
        guard isWhole, unknown.isEmpty else { return work.leave([index], .keysUnknownToPeer) }
        work.restored.insert(index)
    }

    /// Ranges that are asked for at once: few, since each answer may list a thousand keys.
    private static let rangesAtOnce = 16

    /// What the peer has in ranges that follow on one another, for the first of them.
    private func findings(
        in ranges: [KeyRange], _ healer: inout Healer
    ) async throws(SyncError) -> [RangeFinding] {
        let request = ReconcileRequest(
            address: address, asker: try claims(),
            ranges: ranges.map { RangeClaim(range: $0, sum: RecordsSum()) })
        let answer = try await counted { connection, traffic throws(SyncError) in
            try await connection.reconcile(request, &traffic)
        }
        try check(
            answer.knowledge, still: healer.agreed, isGreeting: !healer.hasAnswered)
        healer.note(answer.knowledge)
        return answer.findings
    }
}

/// The peer that heals, by what it says of itself.
private struct Healer {
    /// What it says of itself in its answers; of its greeting before the first of them.
    private(set) var agreed: PeerKnowledge
    private(set) var hasAnswered = false
    /// What was seen here and not there. Greetings claim also what is held there because of its
    /// date, and of which there is no record to give: something older would come in its place.
    private(set) var lacking = VersionVector()
    private let seen: VersionVector

    /// - Parameter seen: all that was seen here.
    init(greeted: PeerKnowledge, seen: VersionVector) {
        agreed = greeted
        self.seen = seen
        look()
    }

    mutating func note(_ answered: PeerKnowledge) {
        guard !hasAnswered else { return }
        agreed = answered
        hasAnswered = true
        look()
    }

    private mutating func look() {
        lacking = VersionVector(seen.dots.filter { $0.counter > agreed.vector[$0.replica] })
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
