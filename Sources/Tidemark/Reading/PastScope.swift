// Reading as of a past moment.
//
// Versions of a key lie next to each other, newest first, so the one that was the newest then is
// the first that is not later. The answer is right as long as no merge has dropped a version that
// was visible then. A version v that another one, w, superseded can be needed only for moments
// before w; so each merge notes the greatest sync count and time of any such w (`HistoryLoss`), and
// whoever asks for an earlier moment is refused. A dataset that was deleted took all with it: the
// same holds for the moment of its deletion.

/// What a reader of the past sees of one dataset.
struct PastScope {
    let moment: Moment
    let dataset: DatasetID
    let dirtiness: Dirtiness
    /// No version after this is seen.
    let syncCountMax: UInt64
    /// No version stamped later is seen.
    let timeMax: UInt64
    /// By which records have expired; 0 if they are seen until the change that deletes them.
    let now: UInt64

    /// Before every version of a key that is seen.
    func position(of key: ByteView) -> EntryPosition {
        EntryPosition(dataset: dataset, key: key, syncCount: syncCountMax)
    }

    func shows(_ entry: Entry) -> Bool {
        guard entry.sequence <= moment.sequenceMax else { return false }
        let stamp = entry.stamp
        return stamp.syncCount <= syncCountMax && stamp.effectTime(of: entry.kind) <= timeMax
    }
}

extension Stamp {
    /// The time from which on the version is what a reader sees. The tombstone of a record that
    /// has expired has the stamp of the record itself, and counts from the expiry on.
    @inline(__always)
    func effectTime(of kind: EntryKind) -> UInt64 {
        expiresAt > 0 && kind == .delete ? max(time, expiresAt << 16) : time
    }
}

extension Engine {
    /// The present moment, for reading as of a past one.
    ///
    /// - Parameter state: of the dataset whose sync count is meant.
    /// - Throws: `invalidArgument` if the past moment has not come yet.
    func moment(for past: PastMoment, of state: DatasetState?) throws(StoreError) -> Moment {
        try monitor.withLock { () throws(StoreError) in
            try checkOpen()
            switch past {
            case .syncCount(let count):
                let last = state?.syncCount ?? 0
                guard count.rawValue <= last else {
                    throw StoreError(
                        .invalidArgument,
                        "the change \(count) has not come yet; the last one is \(last)")
                }
            case .time(let time):
                let now = max(storage.wallClockMilliseconds(), clock.last.milliseconds)
                guard time.milliseconds <= now else {
                    throw StoreError(
                        .invalidArgument,
                        "the time \(time) has not come yet; read as of now, or of an earlier one")
                }
                // What is written here from now on is later, so that the answer stays.
                clock.see(time)
            }
            return Moment(view: currentView, sequenceMax: sequence)
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
        var loss = monitor.withLock {
            HistoryLoss(wholeFrom: state.expiredThrough, wholeFromTime: state.wipedTime)
        }
        for segment in moment.view.segments {
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
