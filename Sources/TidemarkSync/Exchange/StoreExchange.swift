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
            await exchange(dataset, nil, peer: ReplicaID(high: 0, low: 0))
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
            var report = SyncReport()
            do throws(SyncError) {
                if let names {
                    try await run(names, &report)
                } else {
                    try await runAll(&report)
                }
            } catch {
                report.error = error
            }
            return report
        }
        return isLate ? report.mapErrors(options.timedOut) : report
    }

    private func run(_ names: [String], _ report: inout SyncReport) async throws(SyncError) {
        defer { report.datasets.sort { $0.dataset < $1.dataset } }
        let wanted = possible(names, &report)
        do throws(SyncError) {
            for start in stride(from: 0, to: wanted.count, by: SyncLimits.datasetsPerAnswerMax) {
                let chunk = Array(wanted[start...].prefix(SyncLimits.datasetsPerAnswerMax))
                try await runChunk(chunk, &report)
            }
        } catch {
            let known = Set(report.datasets.map(\.dataset))
            for name in wanted where !known.contains(name) {
                report.add(DatasetOutcome(dataset: name, result: nil, error: error))
            }
            throw error
        }
    }

    /// Each name once, in their order. Of those that no dataset can have the peer is not asked,
    /// since it would refuse the whole question.
    private func possible(_ names: [String], _ report: inout SyncReport) -> [String] {
        var possible: [String] = []
        for name in Set(names).sorted() {
            do throws(StoreError) {
                _ = try store.datasetForSync(name, creating: false)
                possible.append(name)
            } catch {
                report.add(
                    DatasetOutcome(
                        dataset: name, result: nil, error: SyncError(error, dataset: name)))
            }
        }
        return possible
    }

    private func runChunk(_ names: [String], _ report: inout SyncReport) async throws(SyncError) {
        var after: String?
        var isComplete = false
        while !isComplete {
            let hello = try await greet(names: names, after: after, &report)
            let told = hello.answer.datasets.last?.name
            isComplete = hello.answer.isComplete
            // Of which the peer says nothing it knows nothing.
            let due = names.filter { name in
                (after.map { name > $0 } ?? true)
                    && (isComplete || told.map { name <= $0 } ?? true)
            }
            try await exchange(due, hello, &report)
            after = told
        }
    }

    private func runAll(_ report: inout SyncReport) async throws(SyncError) {
        var after: String?
        var isComplete = false
        while !isComplete {
            let hello = try await greet(names: nil, after: after, &report)
            let last = hello.answer.datasets.last?.name
            isComplete = hello.answer.isComplete
            let ours = try engine { () throws(StoreError) in try store.datasetNamesForSync() }
            let due = ours.filter { name in
                let isAfter = after.map { name > $0 } ?? true
                return isAfter && (isComplete || last.map { name <= $0 } ?? true)
            }
            let names = Set(due).union(hello.answer.datasets.map(\.name))
            try await exchange(names.sorted(), hello, &report)
            after = last
        }
    }

    /// An answer to a hello, and under which id it was asked for.
    private struct Hello {
        let answer: HelloAnswer
        let asker: ReplicaID
    }

    private func greet(
        names: [String]?, after: String?, _ report: inout SyncReport
    ) async throws(SyncError) -> Hello {
        var traffic = PeerConnection.Traffic()
        defer { report.add(traffic) }
        let (answer, asker) = try await connection.hello(
            from: store, isDryRun: options.isDryRun, names: names, after: after, &traffic)
        report.peer = answer.replica
        return Hello(answer: answer, asker: asker)
    }

    /// Runs the sessions and adds their outcomes in the order of the names.
    private func exchange(
        _ names: [String], _ hello: Hello, _ report: inout SyncReport
    ) async throws(SyncError) {
        let greetings = Dictionary(
            hello.answer.datasets.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let (outcomes, end) = await withTaskGroup(of: (Int, DatasetOutcome).self) { group in
            var outcomes = [DatasetOutcome?](repeating: nil, count: names.count)
            var end: SyncError?
            var (begun, ended) = (0, 0)
            while true {
                while end == nil, begun < names.count,
                    begun - ended < options.parallelDatasetsMax
                {
                    let (index, name) = (begun, names[begun])
                    let greeting = greetings[name]
                    group.addTask { (index, await outcome(of: name, greeting, hello)) }
                    begun += 1
                }
                guard let (index, outcome) = await group.next() else { break }
                ended += 1
                outcomes[index] = outcome
                if let error = outcome.error, error.concernsEveryDataset { end = end ?? error }
            }
            return (outcomes, end)
        }
        for (name, outcome) in zip(names, outcomes) {
            report.add(outcome ?? DatasetOutcome(dataset: name, result: nil, error: end))
        }
        if let end { throw end }
    }

    private func outcome(
        of name: String, _ greeting: DatasetGreeting?, _ hello: Hello
    ) async -> DatasetOutcome {
        let peer = hello.answer.replica
        do throws(SyncError) {
            let dataset = try dataset(name, isKnownThere: greeting?.knowledge != nil)
            // What the peer remembers of an id that this store gave up meanwhile is void.
            let isValid = store.replicaID == hello.asker
            return await exchange(dataset, isValid ? greeting : nil, peer: peer)
        } catch {
            let error = error.located(peer: peer.description, dataset: name)
            return DatasetOutcome(dataset: name, result: nil, error: error)
        }
    }

    private func exchange(
        _ dataset: Dataset, _ greeting: DatasetGreeting?, peer: ReplicaID
    ) async -> DatasetOutcome {
        let session = SyncSession(
            store: store, dataset: dataset, connection: connection, options: options, peer: peer)
        do throws(SyncError) {
            let result = try await session.run(greeting: greeting)
            return DatasetOutcome(dataset: dataset.name, result: result, error: nil)
        } catch {
            return DatasetOutcome(
                dataset: dataset.name, result: session.resultSoFar(), error: error)
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
        return [
            .unreachable, .unauthorized, .protocolMismatch, .sameReplica, .cancelled,
        ].contains(code)
    }
}
