extension Engine {
    /// The present moment, for reading as of a past one.
    ///
    /// - Parameter state: of the dataset whose sync count is meant.
    /// - Throws: `invalidArgument` if the past moment has not come yet.
    func moment(for past: PastMoment, of state: DatasetState?) throws(StoreError) -> Moment {
        try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            switch past {
            case .syncCount(let count):
                let last = state?.syncCount ?? 0
                guard count.rawValue <= last else {
                    throw StoreError(
                        .invalidArgument,
                        "the change \(count) has not come yet; the last one is \(last)")
                }
            case .time(let time):
                let now = max(storage.wallClockMilliseconds(), held.clock.last.milliseconds)
                guard time.milliseconds <= now else {
                    throw StoreError(
                        .invalidArgument,
                        "the time \(time) has not come yet; read as of now, or of an earlier one")
                }
                // What is written here from now on is later, so that the answer stays; what is
                // being written is waited for.
                if time > held.lastBeforeWriter { held.awaitWriter() }
                held.clock.see(time)
            }
            return momentAsStored()
        }
    }

    /// What is seen of a dataset at a past moment.
    ///
    /// - Throws: `historyExpired` if that may not all be there any more, `datasetNotFound`.
    func scope(
        of state: DatasetState, at past: PastMoment, _ moment: Moment
    ) throws(StoreError) -> PastScope {
        let (id, dirtiness) = try scope(of: state, at: moment)
        let start = try historyStart(of: state, id: id, at: moment)
        switch past {
        case .syncCount(let count):
            guard count >= start.syncCount else { throw .historyExpired(state.name, start) }
            return PastScope(
                moment: moment, dataset: id, dirtiness: dirtiness,
                syncCountMax: count.rawValue, timeMax: .max, now: 0)
        case .time(let time):
            guard time >= start.time else { throw .historyExpired(state.name, start) }
            return PastScope(
                moment: moment, dataset: id, dirtiness: dirtiness, syncCountMax: .max,
                timeMax: time.rawValue, now: max(1, time.milliseconds))
        }
    }

    func historyStart(
        of state: DatasetState, id: DatasetID, at moment: Moment
    ) throws(StoreError) -> HistoryStart {
        var loss = withLock { held in
            HistoryLoss(wholeFrom: state.expiredThrough, wholeFromTime: state.wipedTime)
        }
        for segment in moment.view.segments where !options.make(.pastUnnoted) {
            loss.formUnion(try segment.parts().losses()[id])
        }
        return HistoryStart(
            syncCount: SyncCount(rawValue: loss.wholeFrom),
            time: HybridTime(rawValue: loss.wholeFromTime))
    }

    func record(
        of key: ByteView, in scope: PastScope, includingDeleted: Bool
    ) throws(StoreError) -> Record? {
        var cursor = try MergeCursor(scope.moment.view, order: .forward)
        let found = try PastSteps.find(key, in: scope, &cursor)
        guard let found, includingDeleted || found.isLive(at: scope.now) else { return nil }
        return try Record(found, cursor.tables, scope.dirtiness, now: scope.now)
    }
}

extension StoreError {
    fileprivate static func historyExpired(_ name: String, _ start: HistoryStart) -> StoreError {
        StoreError(
            .historyExpired,
            "of \(name) not everything is kept that could be read then; it is from sync count "
                + "\(start.syncCount) and from \(start.time) on. Ask for a later moment, or keep "
                + "more with historyVersions and historyAge")
    }
}
