extension Engine {
    /// The changes of a dataset since a count, with the knowledge of the same moment.
    ///
    /// - Parameter isExchange: whether they are for a peer. A peer is also given what a deleted
    ///   dataset still holds, the tombstones that its deletion had not seen; and whether it lacks
    ///   deletions that were forgotten is found out from what it has seen (`Meeting`). It is given
    ///   records as they are stored, and goes by its own clock for what has expired.
    /// - Throws: `changesExpired` if tombstones after that count are gone.
    func changes(
        of state: DatasetState, since: SyncCount, in range: KeyRange = .all,
        at given: Moment? = nil, isExchange: Bool = false
    ) throws(StoreError) -> (
        moment: Moment, steps: ChangeSteps, dirtiness: Dirtiness, knowledge: DatasetKnowledge
    ) {
        let (moment, id, dirtiness, knowledge, expired) = try withLock {
            (held) throws(StoreError) in
            try held.checkOpen()
            let moment = given ?? (isExchange ? momentAsStored() : momentNow())
            let id =
                isExchange
                ? state.recordsID : state.id(atSequence: moment.sequenceMax)
            guard id != 0 || isExchange else { throw .datasetNotFound(state.name) }
            return (
                moment, id, state.dirtiness(ownIDs: ownIDs), state.knowledge,
                id == state.recordsID ? state.expiredThrough : 0
            )
        }
        if !isExchange, since.rawValue > 0 {
            try checkNotExpired(since, of: state, id: id, at: moment, expiredThrough: expired)
        }
        let steps = ChangeSteps(
            moment, dataset: id, since: since.rawValue, range: range)
        return (moment, steps, dirtiness, knowledge)
    }

    private func checkNotExpired(
        _ since: SyncCount, of state: DatasetState, id: DatasetID, at moment: Moment,
        expiredThrough: UInt64
    ) throws(StoreError) {
        let through = try forgottenThrough(id, at: moment, expiredThrough: expiredThrough)
        guard since.rawValue < through else { return }
        throw StoreError(
            .changesExpired,
            "changes of \(state.name) since \(since) can no longer be told: deletions up to "
                + "\(through) are forgotten. Read the whole dataset, then go on from its present "
                + "sync count")
    }

    /// The count of the last deletion of which nothing is left. O(segments).
    fileprivate func forgottenThrough(
        _ id: DatasetID, at moment: Moment, expiredThrough: UInt64
    ) throws(StoreError) -> UInt64 {
        var through = expiredThrough
        for segment in moment.view.segments {
            through = max(through, try segment.parts().losses()[id].collectedThrough)
        }
        return through
    }
}

extension Dataset {
    /// The count of the last deletion of which nothing is left: whoever was told of all changes up
    /// to there has missed none. O(segments).
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    package func forgottenThrough() throws(StoreError) -> SyncCount {
        let (moment, id, expired) = try momentAsStored { $0.expiredThrough }
        return SyncCount(
            rawValue: try engine.forgottenThrough(id, at: moment, expiredThrough: expired))
    }
}
