extension Store {
    /// Runs a body in a transaction and commits it; if something that it read was changed by
    /// others meanwhile, runs it again from the start, on a new moment.
    ///
    ///     try store.transaction { transaction in
    ///         let from = try transaction.text("a", in: accounts).flatMap { Int($0) } ?? 0
    ///         let to = try transaction.text("b", in: accounts).flatMap { Int($0) } ?? 0
    ///         guard from >= 10 else { throw TooLittle() }
    ///         try transaction.put("\(from - 10)", for: "a", in: accounts)
    ///         try transaction.put("\(to + 10)", for: "b", in: accounts)
    ///     }
    ///
    /// The body must do nothing that cannot be done twice, and must not keep the transaction.
    /// Whatever it reads is of one moment, so what it concludes is never from a half-changed
    /// state. If it throws, nothing is written and the error goes to the caller. Open datasets
    /// before: one that is made within did not exist at the transaction's moment.
    ///
    /// - Parameters:
    ///   - attemptsMax: runs at most, 1...; each conflict means that somebody else's commit went
    ///     through, so some transaction always gets on.
    ///   - durability: in place of the store's own.
    ///   - body: called once for each attempt, on the calling thread.
    /// - Returns: what the attempt that was committed returned.
    /// - Throws: `transactionConflict` if no attempt could be committed, otherwise what
    ///   ``Transaction/commit(durability:)`` throws, and whatever the body throws.
    @discardableResult
    public func transaction<Result>(
        attemptsMax: Int = 16, durability: Durability? = nil,
        _ body: (Transaction) throws -> Result
    ) throws -> Result {
        guard attemptsMax >= 1 else {
            throw StoreError(
                .invalidArgument, "\(attemptsMax) attempts at a transaction; allow at least 1")
        }
        var attemptsLeft = attemptsMax
        while true {
            attemptsLeft -= 1
            let transaction = try beginTransaction()
            defer { transaction.cancel() }
            let result = try body(transaction)
            let conflict = try transaction.conflictOfCommit(durability)
            guard let conflict else { return result }
            guard attemptsLeft > 0 else { throw conflict }
        }
    }

    /// Begins a transaction whose end the caller sees to. Costs as little as a snapshot.
    ///
    /// - Throws: `closed`.
    public func beginTransaction() throws(StoreError) -> Transaction {
        try Transaction(self)
    }

    /// Applies a batch if nothing has changed of what was read.
    func write(
        _ batch: WriteBatch, durability: Durability?, reads: consuming TransactionReads
    ) throws(StoreError) {
        try engine.validateAhead(&reads)
        let checked = reads
        try engine.commit(
            batch, durability: durability,
            validate: { (held) throws(StoreError) in try held.validate(checked) })
        for dataset in batch.datasets {
            engine.waiters.wakeAll(for: dataset.name)
        }
    }
}

extension Transaction {
    /// Commits; returns the conflict that stood in the way, if one did.
    fileprivate func conflictOfCommit(
        _ durability: Durability?
    ) throws(StoreError) -> StoreError? {
        do {
            try commit(durability: durability)
            return nil
        } catch {
            guard error.code == .transactionConflict else { throw error }
            return error
        }
    }
}
