import Tidemark

// The steps of an exchange, whose order says `ExchangeMachine`.

extension SyncSession {
    /// Does what is next, and says what came of it.
    func carryOut(
        _ step: ExchangeMachine.Step
    ) async throws(SyncError) -> ExchangeMachine.Event {
        switch step {
        case .begin: return try begin()
        case .greet(let known): return try await greetBehindMoved(known)
        case .agree(let greeting): return try agree(greeting)
        case .admit: try await admitHeld()
        case .lifecycle: return try await meetLifecycle()
        case .lookUp: return try await lookUpOthers()
        case .bootstrap: if let remote { try await bootstrap(remote) }
        case .startAfresh: try await startAfresh()
        case .reconcile:
            if let remote, try !isSweepWaiting(remote) { try await reconcile(remote) }
        case .sweep: if let remote { try await sweep(remote) }
        case .pull:
            let hasAll = try await part == nil ? pull() : pullPart()
            return hasAll ? .done : .cutShort
        case .settle(let hasAll): return try await settle(hasAll: hasAll)
        case .settleAlone: try settleAlone()
        case .merge:
            try checkHeldPending()
            try await takeMerged()
        case .push, .pushOverlooked: return try await pushNext()
        case .compare: return try await settleOverlooked() ? .done : .equal
        case .retire: if result.isComplete { try await retireMerged() }
        case .acknowledge:
            if part != nil { try storeProgress() }
            try await acknowledge()
        case .end, .giveUp: break
        }
        return .done
    }

    private func begin() throws(SyncError) -> ExchangeMachine.Event {
        late.isMet = false
        keptPart = try engine(dataset.name) { () throws(StoreError) in try PartBook(dataset) }
        guard keptPart == nil else { return .isPart }
        // The attempt before may have taken from a part what is now to be kept whole.
        if part != nil { (part, isOneWay) = (nil, false) }
        return .done
    }

    private func agree(
        _ greeting: DatasetGreeting?
    ) throws(SyncError) -> ExchangeMachine.Event {
        // The peer's checkpoints about an id that we gave up mean nothing for the new one.
        if try noteFork(greeting?.knowledge) { return .forked }
        // A part cannot be compared with what the peer has, so all of it is written anew that may
        // lie under a dot of another write, of this side's or of the peer's. What the peer has of
        // it meets that in a conflict.
        if keptPart != nil { try settleAlone() }
        doubts.take(greeting)
        remote = greeting?.knowledge
        seenByPeer = remote?.vector ?? VersionVector()
        moves.merged = greeting?.merged ?? []
        if let keptPart {
            isOneWay = greeting?.isPart ?? false
            guard !isOneWay else {
                try beginTaking(keptPart)
                return .isTakingOnly
            }
            try rewriteWhatIsDoubtfulThere(keptPart.part)
            try begin(keptPart, greeting)
        } else {
            try takePositions(greeting)
            try judge(remote)
        }
        return .done
    }

    private func meetLifecycle() async throws(SyncError) -> ExchangeMachine.Event {
        if let remote { try await settleLifecycle(remote.lifecycle) }
        guard part == nil else { return .done }
        try await tellDeletion()
        // The answer to what it was told may say more of it than its greeting.
        guard let remote else { return .nothingNew }
        return try hasNews(remote) ? .done : .nothingNew
    }

    /// Of a part.
    private func lookUpOthers() async throws(SyncError) -> ExchangeMachine.Event {
        try await checkWhatOthersBrought()
        // To be whole again takes what the peer claims without what it holds: its greeting does
        // not say.
        let hasNews = (remote?.syncCount ?? .zero) > positions.pull
        let isEnding = part?.record.isEnding ?? false
        return hasNews || isBeginningAfresh || isEnding ? .done : .nothingNew
    }

    private func startAfresh() async throws(SyncError) {
        guard let remote else { return }
        try await startAfresh(remote.forgotten)
        // What was buried here may be more than the peer has seen.
        try judge(remote)
    }

    private func pushNext() async throws(SyncError) -> ExchangeMachine.Event {
        guard part != nil else { return try await push() ? .done : .outdated }
        guard try !waitsForMoved() else { return .cutShort }
        try checkHeldPending()
        return try await pushPart() ? .done : .outdated
    }
}
