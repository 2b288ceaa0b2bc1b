import Tidemark

// An exchange of several datasets over one connection:
//
//   hello ─▶ a session for each dataset of the answer, a few at a time ─▶ hello after the last ...
//
// A dataset's error is its own outcome and ends nothing else, unless it is one that every other
// dataset would meet, too: then no more are begun, and those under way come to their own end.
// Cancelling the task cancels all sessions.

/// Says hello and runs one session for each dataset.
struct StoreExchange: Sendable {
    let store: Store
    let connection: PeerConnection
    let options: SyncOptions

    init(store: Store, transport: any SyncTransport, options: SyncOptions) {
        self.store = store
        connection = PeerConnection(transport: transport)
        self.options = options.bounded
    }

    /// One dataset. The session says hello itself; until then the peer has no name.
    @concurrent
    func run(_ dataset: Dataset) async throws(SyncError) -> SyncResult {
        let (outcome, isLate) = await options.withinDeadline {
            await exchange(dataset, nil, peer: ReplicaID(high: 0, low: 0)).outcome
        }
        if let error = outcome.error {
            throw isLate ? options.timedOut(error) : error
        }
        guard let result = outcome.result else { throw .cancelled(dataset: dataset.name) }
        return result
    }

    /// Several datasets, as many at a time as one greeting tells about.
    @concurrent
    func report(names: [String]?) async -> SyncReport {
        let (report, isLate) = await options.withinDeadline {
            var run = Run()
            do throws(SyncError) {
                if let names {
                    try await exchange(named: names, &run)
                } else {
                    try await exchangeAll(&run)
                }
            } catch {
                run.report.error = error
            }
            run.report.datasets.sort { $0.dataset < $1.dataset }
            return run.report
        }
        return isLate ? report.mapErrors(options.timedOut) : report
    }

    /// What was found out so far.
    struct Run {
        var report = SyncReport()
        /// What the peer last told of those datasets whose exchange ended well.
        var remotes: [String: PeerKnowledge] = [:]
        /// Whether nobody named the datasets. What neither side has is then passed over: a part of
        /// a dataset may have been chosen before there is any.
        var isOfAll = false
        /// What was passed over so.
        var absent: Set<String> = []

        /// All datasets that had their turn.
        var met: Set<String> { Set(report.datasets.map(\.dataset)) }
    }

    private func exchange(
        named names: [String], _ run: inout Run
    ) async throws(SyncError) {
        let wanted = possible(names, &run)
        do throws(SyncError) {
            for start in stride(from: 0, to: wanted.count, by: SyncLimits.datasetsPerAnswerMax) {
                let chunk = Array(wanted[start...].prefix(SyncLimits.datasetsPerAnswerMax))
                try await runChunk(chunk, &run)
            }
        } catch {
            let known = run.met
            for name in wanted where !known.contains(name) {
                run.report.add(DatasetOutcome(dataset: name, result: nil, error: error))
            }
            throw error
        }
    }

    /// Each name once, in their order. Of those that no dataset can have the peer is not asked,
    /// since it would refuse the whole question.
    private func possible(_ names: [String], _ run: inout Run) -> [String] {
        var possible: [String] = []
        for name in Set(names).sorted() {
            do throws(StoreError) {
                _ = try store.datasetForSync(name, creating: false)
                possible.append(name)
            } catch {
                run.report.add(
                    DatasetOutcome(
                        dataset: name, result: nil, error: SyncError(error, dataset: name)))
            }
        }
        return possible
    }

    private func runChunk(_ names: [String], _ run: inout Run) async throws(SyncError) {
        var after: String?
        var isComplete = false
        while !isComplete {
            let hello = try await greet(names: names, after: after, &run)
            isComplete = hello.answer.isComplete
            // Of which the peer says nothing it knows nothing.
            try await exchange(hello.due(names, after: after), hello, &run)
            after = hello.last
        }
    }

    /// All datasets of both sides: all in which anything has changed since the last time, if that
    /// is known, else each.
    private func exchangeAll(_ run: inout Run) async throws(SyncError) {
        run.isOfAll = true
        let start = try AllDatasets(store)
        let marks = options.isFull || options.looksAtAll || options.isDryRun ? [] : start.marks
        var hello = try await greet(names: nil, after: nil, marks: marks, &run)
        let settled = start.settled(by: hello.answer, as: hello.asker)
        if settled == nil, hello.answer.changedSince != nil {
            // It speaks of a time before one of the two took another id.
            hello = try await greet(names: nil, after: nil, &run)
        }
        let mark = hello.answer.mark
        var after: String?
        while true {
            var names = Set(hello.answer.datasets.map(\.name))
            if settled == nil {
                let ours = try engine { () throws(StoreError) in try store.datasetNamesForSync() }
                names.formUnion(hello.due(ours, after: after))
            }
            try await exchange(names.sorted(), hello, &run)
            guard !hello.answer.isComplete else { break }
            after = hello.last
            hello = try await greet(
                names: nil, after: after, marks: settled.map { [$0.peerMark] } ?? [], &run)
        }
        if let settled {
            let changed = try start.changed(since: settled)
            try await exchange(named: changed.subtracting(run.met).sorted(), &run)
        }
        if !options.isDryRun { try start.note(run, with: hello.answer.replica, mark) }
    }

    /// An answer to a hello, and under which id it was asked for.
    private struct Hello {
        let answer: HelloAnswer
        let asker: ReplicaID

        /// The last dataset it tells of; what comes after it is in the next answer.
        var last: String? { answer.datasets.last?.name }

        /// Those of the names about which this answer decides: after the last one of the answer
        /// before, and up to its own last one, or all that are left.
        func due(_ names: [String], after: String?) -> [String] {
            names.filter { name in
                let isAfter = after.map { name > $0 } ?? true
                return isAfter && (answer.isComplete || last.map { name <= $0 } ?? true)
            }
        }
    }

    private func greet(
        names: [String]?, after: String?, marks: [StoreMark] = [], _ run: inout Run
    ) async throws(SyncError) -> Hello {
        var traffic = PeerConnection.Traffic()
        defer { run.report.add(traffic) }
        let (answer, asker) = try await connection.hello(
            from: store, isDryRun: options.isDryRun, names: names, after: after, marks: marks,
            &traffic)
        run.report.peer = answer.replica
        return Hello(answer: answer, asker: asker)
    }

    /// Runs the sessions and adds their outcomes in the order of the names.
    private func exchange(
        _ names: [String], _ hello: Hello, _ run: inout Run
    ) async throws(SyncError) {
        let greetings = Dictionary(
            hello.answer.datasets.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let names = try run.isOfAll ? present(names, greetings, &run) : names
        let wanted: Set<String>? = run.isOfAll ? nil : Set(names)
        let (outcomes, end) = await withTaskGroup(of: (Int, Ended).self) { group in
            var outcomes = [Ended?](repeating: nil, count: names.count)
            var end: SyncError?
            var (begun, ended) = (0, 0)
            while true {
                while end == nil, begun < names.count,
                    begun - ended < options.parallelDatasetsMax
                {
                    let (index, name) = (begun, names[begun])
                    let greeting = greetings[name]
                    group.addTask { (index, await outcome(of: name, greeting, hello, wanted)) }
                    begun += 1
                }
                guard let (index, next) = await group.next() else { break }
                ended += 1
                outcomes[index] = next
                if let error = next.outcome.error, error.concernsEveryDataset { end = end ?? error }
            }
            return (outcomes, end)
        }
        for (name, ended) in zip(names, outcomes) {
            run.report.add(
                ended?.outcome ?? DatasetOutcome(dataset: name, result: nil, error: end))
            run.remotes[name] = ended?.remote
        }
        if let end { throw end }
    }

    /// Those of the names of which either side has a dataset.
    private func present(
        _ names: [String], _ greetings: [String: DatasetGreeting], _ run: inout Run
    ) throws(SyncError) -> [String] {
        try engine { () throws(StoreError) in
            var present: [String] = []
            for name in names {
                let isThere = greetings[name]?.knowledge != nil
                if !isThere, try store.datasetForSync(name, creating: false) == nil {
                    run.absent.insert(name)
                } else {
                    present.append(name)
                }
            }
            return present
        }
    }

    /// What became of a dataset.
    private struct Ended: Sendable {
        let outcome: DatasetOutcome
        /// What the peer last told of it, if the exchange ended well and whole.
        var remote: PeerKnowledge?
    }

    /// - Parameter wanted: what else is exchanged; nil for everything.
    private func outcome(
        of name: String, _ greeting: DatasetGreeting?, _ hello: Hello, _ wanted: Set<String>?
    ) async -> Ended {
        let peer = hello.answer.replica
        do throws(SyncError) {
            let dataset = try dataset(name, isKnownThere: greeting?.knowledge != nil)
            // What the peer remembers of an id that this store gave up meanwhile is void.
            let isValid = store.replicaID == hello.asker
            return await exchange(dataset, isValid ? greeting : nil, peer: peer) { name in
                wanted?.contains(name) ?? true
            }
        } catch {
            let error = error.located(peer: peer.description, dataset: name)
            return Ended(outcome: DatasetOutcome(dataset: name, result: nil, error: error))
        }
    }

    private func exchange(
        _ dataset: Dataset, _ greeting: DatasetGreeting?, peer: ReplicaID,
        mayExchange: @escaping @Sendable (String) -> Bool = { _ in false }
    ) async -> Ended {
        let session = SyncSession(
            store: store, dataset: dataset, connection: connection, options: options, peer: peer,
            mayExchange: mayExchange)
        do throws(SyncError) {
            let result = try await session.run(greeting: greeting)
            return Ended(
                outcome: DatasetOutcome(dataset: dataset.name, result: result, error: nil),
                remote: result.isComplete ? session.remote : nil)
        } catch {
            return Ended(
                outcome: DatasetOutcome(
                    dataset: dataset.name, result: session.resultSoFar(), error: error))
        }
    }

    private func dataset(_ name: String, isKnownThere: Bool) throws(SyncError) -> Dataset {
        try engine(name) { () throws(StoreError) in
            guard let dataset = try store.datasetForSync(name, creating: isKnownThere) else {
                throw StoreError(
                    .datasetNotFound,
                    "neither side has a dataset \(name); correct the name or create it first")
            }
            return dataset
        }
    }
}

extension SyncError {
    /// Whether any other dataset would meet the same error.
    fileprivate var concernsEveryDataset: Bool {
        if let storeError {
            return [.closed, .readOnly, .writerStopped, .diskFull, .inputOutput]
                .contains(storeError.code)
        }
        // A peer that wants to be left alone for a while has answered for all of them.
        if retryAfter != nil { return true }
        return [
            .unreachable, .unauthorized, .protocolMismatch, .sameReplica, .cancelled,
        ].contains(code)
    }
}
