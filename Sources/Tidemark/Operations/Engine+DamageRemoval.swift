/// Why a block is still there though its records were asked for.
package enum HealingObstacle: Hashable, Sendable {
    /// The hash index names keys in it of which nobody knows anything.
    case unknownKeys
    /// Another block of the same segment cannot go yet.
    case besideOthers
    /// Something else of the segment cannot be read.
    case unreadable
}

/// What became of damaged blocks.
package struct DamageRemoval: Sendable {
    /// Blocks and indexes that are gone.
    package var blocksRemoved = 0
    /// Pieces that are still there, by their places among the pieces of the survey.
    package var left: [Int: HealingObstacle] = [:]
    /// Those that are gone.
    package var removed: Set<Int> = []
    /// Damaged indexes that are still there.
    package var indexesLeft: [StoreDamage] = []
    /// Segments that are gone.
    var rewritten: Set<UInt64> = []
}

extension Engine {
    /// Writes the segments anew whose damaged blocks hide nothing any more, without these blocks.
    ///
    /// - Parameters:
    ///   - restored: the pieces of which all was restored that is known.
    ///   - places: for each of these, the places in its block that known keys account for.
    func removeDamage(
        _ survey: DamageSurvey, restored: Set<Int>, places: [Int: Set<UInt32>]
    ) throws(StoreError) -> DamageRemoval {
        var removal = DamageRemoval()
        var removable: SkippedBlocks = [:]
        let view = currentView
        for (number, blocks) in survey.skipped {
            for block in blocks {
                let place = BlockPlace(segment: number, block: block)
                let indices = survey.indices(of: place)
                guard !survey.hopelessBlocks.contains(place), restored.isSuperset(of: indices)
                else { continue }
                if try isAccountedFor(place, by: indices.compactMap { places[$0] }, survey, view) {
                    removable[number, default: []].insert(block)
                } else {
                    for index in indices { removal.left[index] = .unknownKeys }
                }
            }
        }
        let numbers = Set(removable.keys).union(survey.indexes.keys).sorted()
        guard !numbers.isEmpty else { return removal }
        // Before the blocks go, what took their place must be there to stay.
        try syncAll()
        try takeCompaction()
        defer { endCompaction() }
        return try stoppingOnFailure { () throws(StoreError) -> DamageRemoval in
            for number in numbers {
                try rewrite(segment: number, without: removable, survey, &removal)
            }
            removal.removed = Set(
                survey.pieces.indices.filter { index in
                    let place = survey.pieces[index].place
                    return removal.left[index] == nil
                        && removable[place.segment]?.contains(place.block) ?? false
                })
            return removal
        }
    }

    /// Whether known keys account for all that the hash index names in a block.
    private func isAccountedFor(
        _ place: BlockPlace, by known: [Set<UInt32>], _ survey: DamageSurvey, _ view: ReadView
    ) throws(StoreError) -> Bool {
        // Keys of datasets that are gone are known to nobody. And without an index, that the peer
        // has seen all that was seen here is what there is to go by.
        guard !survey.blocksWithDead.contains(place),
            let segment = view.segments.first(where: { $0.number == place.segment }),
            let named = try unlessDamaged({ () throws(StoreError) in
                try segment.parts().indexedPlaces(in: place.block)
            })
        else { return true }
        return known.reduce(named) { $0.subtracting($1) }.isEmpty
    }

    /// Rewrites a segment, with its neighbours if they share a key, unless that was done already.
    /// For whoever has the right to compact.
    private func rewrite(
        segment number: UInt64, without removable: SkippedBlocks, _ survey: DamageSurvey,
        _ removal: inout DamageRemoval
    ) throws(StoreError) {
        guard !removal.rewritten.contains(number) else { return }
        let runs = currentView.runs
        var numbers: Set<UInt64> = [number]
        var obstacle = HealingObstacle.unreadable
        do throws(StoreError) {
            guard
                let run = runs.first(where: { run in
                    run.segments.contains { $0.number == number }
                }), let index = run.segments.firstIndex(where: { $0.number == number })
            else { throw Malformed("merged meanwhile").error(in: path, at: nil) }
            let part = try RunPart(run, including: index...index)
            numbers = Set(part.segments.map(\.number))
            let isFree = numbers.allSatisfy { number in
                (survey.skipped[number] ?? []).isSubset(of: removable[number] ?? [])
            }
            if isFree {
                try rewrite(part, without: removable, survey)
                removal.rewritten.formUnion(numbers)
                for number in numbers {
                    removal.blocksRemoved += removable[number]?.count ?? 0
                    removal.blocksRemoved += survey.indexes[number] == nil ? 0 : 1
                }
                return
            }
            obstacle = .besideOthers
        } catch {
            // What cannot be read now stays, and is reported as ever.
            guard error.code == .corruption || error.isOfReading else { throw error }
        }
        for index in survey.pieces.indices {
            let place = survey.pieces[index].place
            guard numbers.contains(place.segment), removal.left[index] == nil,
                removable[place.segment]?.contains(place.block) ?? false
            else { continue }
            removal.left[index] = obstacle
        }
        if let damage = survey.indexes[number] { removal.indexesLeft.append(damage) }
    }

    private func rewrite(
        _ part: RunPart, without removable: SkippedBlocks, _ survey: DamageSurvey
    ) throws(StoreError) {
        let old = Array(part.segments)
        let start = noteMergeStart(old, runCount: 1)
        let writer = runWriter()
        do throws(StoreError) {
            var merge = SegmentMerge(
                cursor: MergeCursor(
                    memtables: [],
                    runs: [try RunCursor(SegmentRun(old), skipping: removable)],
                    order: .forward),
                reachesOldest: false, retention: { _ in .everything },
                isStoreRecordNeeded: { _ in true }, losses: try losses(of: old, survey),
                isCancelled: mergePause(writer))
            guard try merge.write(to: writer) else { throw .closed(path) }
        } catch {
            removeFiles(of: [writer])
            noteMergeFailed(error)
            throw error
        }
        let made = try finish(writer).segments
        try replace([part.replacement(with: made)], removing: old)
        events.forgetPlaces(in: Set(old.map(\.path)))
        noteMerged(old, runCount: 1, into: made, since: start)
    }

    /// What the segments have lost, and with it all of the past of what the blocks held: what was
    /// restored has new places in the order of change.
    private func losses(
        of segments: [SealedSegment], _ survey: DamageSurvey
    ) throws(StoreError) -> SegmentLosses {
        var losses = SegmentLosses()
        for segment in segments { losses.formUnion(try segment.parts().losses()) }
        let numbers = Set(segments.map(\.number))
        let ids = Set(
            survey.pieces.lazy.filter { numbers.contains($0.place.segment) }.map(\.id))
        for id in ids {
            let present = try withState(numbered: id) { held, state in
                (syncCount: state?.syncCount ?? 0, time: held.clock.last.rawValue)
            }
            losses[id].noteDropped(supersededAt: present.syncCount, time: present.time)
        }
        return losses
    }
}

extension Retention {
    /// Nothing goes but the blocks that are left out: what a merge needs to know of datasets may be
    /// just what cannot be read.
    fileprivate static var everything: Retention {
        Retention(
            isLive: true, historyVersions: .max, agedBefore: .max,
            dirtiness: Dirtiness(ownIDs: [], acknowledged: VersionVector()))
    }
}

extension Store {
    /// What is known to be damaged, for whoever heals it.
    package func surveyDamage() throws(StoreError) -> DamageSurvey {
        try engine.surveyDamage()
    }

    /// Lets go of damaged blocks that hide nothing any more. See `Engine+Healing.swift`.
    package func removeDamage(
        _ survey: DamageSurvey, restored: Set<Int>, places: [Int: Set<UInt32>]
    ) throws(StoreError) -> DamageRemoval {
        try engine.removeDamage(survey, restored: restored, places: places)
    }
}
