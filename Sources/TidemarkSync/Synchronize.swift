public import Tidemark

extension Dataset {
    /// Exchanges changes with a peer until both sides hold the same: pulls, settles conflicts,
    /// pushes. Nothing is pushed until everything is pulled and every conflict settled.
    ///
    /// ```swift
    /// let result = try await notes.synchronize(with: transport)
    /// print("\(result.pulled) in, \(result.pushed) out, \(result.conflicts) conflicts")
    /// ```
    ///
    /// Writes go on meanwhile; those made after the last page was read leave with the next
    /// exchange. Interrupted at any point, the next call goes on after the last page applied.
    /// Takes memory for one page and time in proportion to the changes since the last exchange.
    @discardableResult
    public func synchronize(
        with transport: any SyncTransport, options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> SyncResult {
        try await Synchronization(store: store, transport: transport, options: options)
            .run(self)
    }
}

extension Store {
    /// Exchanges several datasets with a peer, one after the other in the order of their names.
    ///
    /// If one of them stops for a reason of its own (an unsettled conflict, a deletion, too many
    /// writes), the others are exchanged all the same and its error is thrown in the end.
    ///
    /// - Parameter datasets: their names; nil for all datasets of both sides. A name that neither
    ///   side knows is a `store` error with `datasetNotFound`.
    @discardableResult
    public func synchronize(
        with transport: any SyncTransport, datasets: [String]? = nil,
        options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> [SyncResult] {
        try await Synchronization(store: self, transport: transport, options: options)
            .run(names: datasets)
    }
}

/// Says hello and runs one session for each dataset.
private struct Synchronization: Sendable {
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
        let session = SyncSession(
            store: store, dataset: dataset, connection: connection, options: options,
            peer: ReplicaID(high: 0, low: 0))
        return try await session.run(greeting: nil)
    }

    /// Several datasets, as many at a time as one greeting tells about.
    @concurrent
    func run(names: [String]?) async throws(SyncError) -> [SyncResult] {
        var run = Run()
        guard let names else {
            try await runAll(&run)
            return try run.outcome()
        }
        let wanted = Set(names).sorted()
        for start in stride(from: 0, to: wanted.count, by: SyncLimits.datasetsPerAnswerMax) {
            let chunk = wanted[start...].prefix(SyncLimits.datasetsPerAnswerMax)
            var after: String?
            while true {
                let hello = try await greet(names: Array(chunk), after: after)
                try await exchange(hello.answer.datasets.map(\.name), hello, &run)
                guard !hello.answer.isComplete else { break }
                after = hello.answer.datasets.last?.name
            }
        }
        return try run.outcome()
    }

    private func runAll(_ run: inout Run) async throws(SyncError) {
        var after: String?
        var isComplete = false
        while !isComplete {
            let hello = try await greet(names: nil, after: after)
            let last = hello.answer.datasets.last?.name
            isComplete = hello.answer.isComplete
            let ours = try engine { () throws(StoreError) in try store.datasetNamesForSync() }
            let due = ours.filter { name in
                let isAfter = after.map { name > $0 } ?? true
                return isAfter && (isComplete || last.map { name <= $0 } ?? true)
            }
            let names = Set(due).union(hello.answer.datasets.map(\.name))
            try await exchange(names.sorted(), hello, &run)
            after = last
        }
    }

    /// An answer to a hello, and under which id it was asked for.
    private struct Hello {
        let answer: HelloAnswer
        let asker: ReplicaID
    }

    private func greet(names: [String]?, after: String?) async throws(SyncError) -> Hello {
        let asker = store.replicaID
        var traffic = PeerConnection.Traffic()
        let answer = try await connection.hello(
            HelloRequest(
                versions: SyncLimits.protocolVersions, from: asker, names: names, after: after),
            &traffic)
        try SyncSession.refuse(answer.replica, sameAs: asker)
        return Hello(answer: answer, asker: asker)
    }

    private func exchange(
        _ names: [String], _ hello: Hello, _ run: inout Run
    ) async throws(SyncError) {
        let greetings = Dictionary(
            hello.answer.datasets.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        for name in names {
            // What the peer remembers of an id that this store gave up meanwhile is void.
            let greeting = store.replicaID == hello.asker ? greetings[name] : nil
            do throws(SyncError) {
                let session = SyncSession(
                    store: store,
                    dataset: try dataset(name, isKnownThere: greetings[name]?.knowledge != nil),
                    connection: connection, options: options, peer: hello.answer.replica)
                run.results.append(try await session.run(greeting: greeting))
            } catch {
                guard Self.concernsOneDataset(error) else { throw error }
                run.firstError = run.firstError ?? error
            }
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

    private static func concernsOneDataset(_ error: SyncError) -> Bool {
        [.conflictPending, .datasetDeleted, .contended].contains(error.code)
    }

    private struct Run {
        var results: [SyncResult] = []
        var firstError: SyncError?

        func outcome() throws(SyncError) -> [SyncResult] {
            if let firstError { throw firstError }
            return results
        }
    }
}
