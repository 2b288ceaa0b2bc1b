import Tidemark
import TidemarkSync

// How one identity becomes a part of another. A crash at any point leaves both whole:
//
// 1. A batch notes in the facts of both that the one goes into the other. From then on requests of
//    either are refused: those of the one that goes for good, those of the other one for now. What
//    was let in before ends before anything is moved, so neither changes any more.
// 2. Its datasets go over one after another. Where the other has none of the name it gets it as it
//    was; else it gets it under another name, noted as one that is to be merged into its own, which
//    is what its devices are told in `MergedDatasetNames` or by native sync. Which name that is
//    stands in the facts before anything is copied; what is copied already is passed over; and a
//    dataset is deleted only when its copy is there. Streams and devices are told of what came
//    into the other's datasets, as of what a replica pushes.
// 3. A batch gives over the logins, and ends what step 1 began.
//
// Whoever asks about either of them goes on where it was stopped.

extension IdentityDirectory {
    /// Makes an identity a part of another one of its pool. O(all that it has).
    ///
    /// - Throws: `StoreError`; `APIFailure` with `tooManyRequests` while others are at work on one
    ///   of them, or calls that were let in before are under way: it is begun then, and goes on
    ///   when either of the two is asked about again; with `resourceConflict` if one of them is
    ///   merged with a third or not in use any more.
    func merge(_ loser: IdentityID, into winner: IdentityID, in store: Store) throws {
        guard loser != winner else { return }
        // What was to go into the one that goes is to be there by then. Nothing goes into those.
        for other in try identity(loser, in: store)?.absorbing ?? [] where other != winner {
            try mergeAlone(other, into: loser, in: store)
        }
        try mergeAlone(loser, into: winner, in: store)
    }

    /// Without those that were to go into the one that goes.
    private func mergeAlone(
        _ loser: IdentityID, into winner: IdentityID, in store: Store
    ) throws {
        try reserve([loser, winner]) {
            guard try begin(loser, winner, store) else { return }
            endAccess(of: loser)
            try requireQuiet([loser, winner])
            try moveDatasets(of: loser, to: winner, store)
            if let facts = try identity(loser, in: store) { try forget(facts, in: store) }
            try end(loser, winner, store)
            // Whoever began to listen meanwhile did so before its devices were forgotten.
            endAccess(of: loser)
        }
    }

    /// Goes on with what was stopped, be it that an identity goes into another, or others into it.
    ///
    /// - Returns: whether there was anything.
    func resume(_ facts: IdentityFacts, in store: Store) throws -> Bool {
        if let into = facts.merging.flatMap({ IdentityID($0.into) }) {
            try merge(facts.id, into: into, in: store)
            return true
        }
        for loser in facts.absorbing {
            try merge(loser, into: facts.id, in: store)
        }
        return !facts.absorbing.isEmpty
    }

    // MARK: - Steps

    /// - Returns: whether there is anything to be done.
    private func begin(
        _ loser: IdentityID, _ winner: IdentityID, _ store: Store
    ) throws -> Bool {
        for _ in 0..<Self.attemptsMax {
            let (one, other) = try both(loser, winner, store)
            var from = one.facts
            var to = other.facts
            if from.mergedInto == winner { return false }
            let isOther = from.merging.map { $0.into != winner.text } ?? false
            guard from.mergedInto == nil, !isOther, to.isEnabled, to.merging == nil else {
                throw APIFailure(
                    .resourceConflict,
                    "one of the identities is merged with another one, or not in use any more")
            }
            let isNoted = from.merging != nil && to.absorbing.contains(loser)
            guard !isNoted else { return true }
            guard from.absorbing.isEmpty else { throw Self.overtaken }
            guard from.isEnabled else {
                throw APIFailure(.resourceConflict, "the identity is not in use any more")
            }
            guard from.logins.count + to.logins.count <= IdentityFacts.loginsMax else {
                throw APIFailure(
                    .limitExceeded,
                    "an identity has at most \(IdentityFacts.loginsMax) logins; unlink some")
            }
            from.merging = from.merging ?? IdentityFacts.Merging(into: winner.text)
            if !to.absorbing.contains(loser) { to.absorbing.append(loser) }
            var batch = WriteBatch()
            try put(from, over: one.dot, &batch, store)
            try put(to, over: other.dot, &batch, store)
            if try Self.wrote(batch, store) { return true }
        }
        throw Self.overtaken
    }

    private func moveDatasets(
        of loser: IdentityID, to winner: IdentityID, _ store: Store
    ) throws {
        guard let facts = try identity(loser, in: store), facts.mergedInto == nil else { return }
        if let merging = facts.merging, merging.dataset != nil {
            try move(merging, store)
        }
        let count = StoreNames.prefix(of: loser).count
        while let name = try Self.firstDataset(of: loser, store) {
            let plain = StoreNames.prefix(of: winner) + name.dropFirst(count)
            let root = plain.utf8.count <= Limits.datasetNameBytesMax ? plain : nil
            // What was merged into it before goes over first: its note goes with the dataset.
            for merged in try store.mergedDatasets(into: name) {
                guard merged.name.hasPrefix(StoreNames.prefix(of: loser)) else { continue }
                try move(
                    merged.name, from: loser, to: winner, into: root, origin: merged.origin, store)
            }
            try move(name, from: loser, to: winner, into: nil, origin: loser.text, store)
        }
    }

    private func both(
        _ loser: IdentityID, _ winner: IdentityID, _ store: Store
    ) throws -> (one: (facts: IdentityFacts, dot: Dot), other: (facts: IdentityFacts, dot: Dot)) {
        guard let one = try held(loser, in: store), let other = try held(winner, in: store),
            one.facts.pool == other.facts.pool
        else {
            throw APIFailure(.resourceNotFound, "there is no such identity to be merged")
        }
        return (one, other)
    }

    private func end(_ loser: IdentityID, _ winner: IdentityID, _ store: Store) throws {
        for _ in 0..<Self.attemptsMax {
            let (one, other) = try both(loser, winner, store)
            var from = one.facts
            var to = other.facts
            guard from.mergedInto == nil else { return }
            var batch = WriteBatch()
            if !from.logins.isEmpty {
                let logins = try store.dataset(HubDatasets.logins)
                for login in from.logins {
                    batch.put(
                        Array(winner.text.utf8), for: Self.key(of: login, in: from.pool),
                        in: logins)
                }
            }
            to.logins += from.logins.filter { !to.logins.contains($0) }
            to.absorbing.removeAll { $0 == loser }
            to.modified = clock.now()
            from.logins = []
            from.merging = nil
            from.mergedInto = winner
            from.isEnabled = false
            from.modified = to.modified
            try put(from, over: one.dot, &batch, store)
            try put(to, over: other.dot, &batch, store)
            if try Self.wrote(batch, store) { return }
        }
        throw Self.overtaken
    }

    // MARK: - One dataset

    /// - Parameters:
    ///   - name: in the store.
    ///   - root: the dataset that it is to be merged into by devices in any case; nil if only where
    ///     there is one of its name.
    private func move(
        _ name: String, from loser: IdentityID, to winner: IdentityID, into root: String?,
        origin: String, _ store: Store
    ) throws {
        let own = String(name.dropFirst(StoreNames.prefix(of: loser).count))
        let plain = StoreNames.prefix(of: winner) + own
        // A replica can have made one with a longer name than clients of the API can.
        let fits = plain.utf8.count <= Limits.datasetNameBytesMax
        let isFree = try fits && store.existingDataset(plain) == nil
        var step = IdentityFacts.Merging(into: winner.text)
        step.dataset = name
        step.target = try isFree ? plain : freeName(for: own, of: loser, in: winner, store)
        step.root = root ?? (isFree || !fits ? nil : plain)
        step.origin = origin
        let noted = step
        try change(loser, in: store) { facts, _ in facts.merging = noted }
        try move(step, store)
    }

    private func move(_ step: IdentityFacts.Merging, _ store: Store) throws {
        guard let name = step.dataset, let target = step.target else { return }
        if let source = try store.existingDataset(name) {
            try move(source, to: target, step, store)
        }
        try forget(dataset: name, in: store)
    }

    private func move(
        _ source: Dataset, to target: String, _ step: IdentityFacts.Merging, _ store: Store
    ) throws {
        // Calls of the Cognito API that began before the merge are bound to the sync count that
        // they have seen. This one moves it: none of them goes through any more.
        try source.delete(Self.countMovingKey)
        let copy = try store.dataset(target)
        try passingOn(target) { try copyAll(of: source, into: copy, store) }
        if let root = step.root {
            try store.noteMerged(
                MergedDataset(name: target, origin: step.origin ?? ""), into: root)
        }
        try store.deleteDataset(source.name)
    }

    /// No client has such a key: the API takes no empty ones, and this is beside all text.
    private static let countMovingKey: [UInt8] = [0]
    private static let batchBytes = 1 << 20

    /// - Throws: `APIFailure` with `tooManyRequests` if it does not come to an end.
    private func copyAll(of source: Dataset, into copy: Dataset, _ store: Store) throws {
        var copied = SyncCount.zero
        // A replica may have pushed until now. None is let in any more, so once more is enough.
        for _ in 0..<Self.attemptsMax {
            let count = try source.syncCount
            if count == copied { return }
            do throws(StoreError) {
                try copyRecords(of: source, after: copied, into: copy, store)
                copied = count
            } catch {
                // Somebody has put a record of that key, which stays: so all is looked at again.
                guard error.code == .versionMismatch else { throw error }
            }
        }
        throw Self.overtaken
    }

    /// Copies live records that the other dataset has none of, and overwrites those that have
    /// changed since the last time.
    ///
    /// - Parameter count: `zero` for the first time.
    private func copyRecords(
        of source: Dataset, after count: SyncCount, into copy: Dataset, _ store: Store
    ) throws(StoreError) {
        let isFirst = count == .zero
        let cursor = try isFirst ? source.records() : source.changes(since: count)
        var batch = WriteBatch()
        var bytes = 0
        while let record = try cursor.next() {
            guard let value = record.value else { continue }
            if isFirst {
                let there = try copy.record(for: record.key, includingDeleted: true)
                guard there == nil else { continue }
            }
            if isFirst, record.expiresAt == nil {
                batch.put(value, for: record.key, in: copy, ifAt: nil)
            } else {
                batch.put(value, for: record.key, in: copy, expiresAt: record.expiresAt ?? 0)
            }
            bytes += record.key.count + value.count
            guard bytes >= Self.batchBytes else { continue }
            try store.write(batch)
            batch.removeAll(keepingCapacity: true)
            bytes = 0
        }
        try store.write(batch)
    }

    /// A name that the other identity has no dataset of: with the id of the one whose it was, or,
    /// where that is too long or taken, with a digest of whose it was and what it was called.
    private func freeName(
        for name: String, of loser: IdentityID, in winner: IdentityID, _ store: Store
    ) throws -> String {
        let digest = Digests.hexadecimal(
            Digests.sha256(Array((StoreNames.prefix(of: loser) + name).utf8)))
        var texts = ["\(name).\(loser.text)"]
        for number in 0..<100 {
            let ending = ".\(digest.prefix(16))" + (number == 0 ? "" : "-\(number)")
            let begin = name.prefix(APINames.datasetNameBytesMax - ending.utf8.count)
            texts.append("\(begin)\(ending)")
        }
        for text in texts {
            guard let free = APIDatasetName(text) else { continue }
            let stored = StoreNames.dataset(free, of: winner)
            if try store.existingDataset(stored) == nil { return stored }
        }
        throw APIFailure(.resourceConflict, "the identities were merged too often")
    }
}
