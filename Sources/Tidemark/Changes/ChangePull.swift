/// Pulls the changes of one dataset, pass after pass.
struct ChangePull {
    enum Step {
        case record(Record)
        /// Many changes were passed over; there may be more.
        case paused
        /// All that there was at one moment has been given.
        case passEnded
        /// Nothing has changed since.
        case caughtUp
    }

    let dataset: Dataset
    private let range: KeyRange
    /// Everything up to here has been given or passed over.
    private(set) var position: SyncCount
    private var pass: ChangePass?
    private var records: ArraySlice<Record> = []
    /// Where the pass stands, behind the last of `records`.
    private var through: SyncCount

    init(_ dataset: Dataset, since: SyncCount, in range: KeyRange) {
        self.dataset = dataset
        self.range = range
        position = since
        through = since
    }

    /// - Throws: `changesExpired`, `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    mutating func next() throws(StoreError) -> Step {
        while true {
            if let record = records.popFirst() {
                position = records.isEmpty ? through : record.syncCount
                return .record(record)
            }
            guard let pass else {
                guard try begin() else { return .caughtUp }
                continue
            }
            let piece: ChangePass.Piece
            do {
                piece = try pass.next()
            } catch {
                // Whoever tries again begins where the last record was.
                dataset.engine.views.holders.remove(pass)
                self.pass = nil
                throw error
            }
            switch piece {
            case .letGo:
                self.pass = nil
            case .ended:
                dataset.engine.views.holders.remove(pass)
                self.pass = nil
                position = pass.end
                through = pass.end
                return .passEnded
            case .records(let found, let end):
                records = found[...]
                through = end
                if found.isEmpty {
                    position = end
                    return .paused
                }
            }
        }
    }

    /// Begins a pass over what has changed; false if nothing has.
    private mutating func begin() throws(StoreError) -> Bool {
        let engine = dataset.engine
        let changes = try engine.changes(of: dataset.state, since: position, in: range)
        guard changes.knowledge.syncCount > position else { return false }
        let next = ChangePass(
            changes.steps, changes.dirtiness, end: changes.knowledge.syncCount)
        engine.views.holders.add(next)
        // Replaced in between, when nobody knew yet of the pass.
        if engine.currentView !== changes.moment.view { next.letGo() }
        pass = next
        return true
    }
}
