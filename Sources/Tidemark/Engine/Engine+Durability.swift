internal import Synchronization

extension Engine {
    /// Waits until a commit is as durable as was asked.
    func makeDurable(_ position: LogPosition, _ durability: Durability?) throws(StoreError) {
        switch durability ?? options.durability {
        case .memory, .process:
            // What was stored into the shared mapping belongs to the kernel already.
            do {
                try ownership?.check(at: storage.wallClockMilliseconds())
            } catch {
                withLock { held in held.stopWriting(error) }
                throw error
            }
        case .disk:
            try sync(through: position)
        }
    }

    /// Promises of what is there now what a write of this moment would promise.
    func acknowledgePresent() throws(StoreError) {
        let position = try withLock { (held) throws(StoreError) in
            try held.checkWritable()
            return held.active.map { LogPosition(endOf: $0.log) }
        }
        if let position { try makeDurable(position, nil) }
    }

    /// Makes everything committed so far durable.
    func syncAll() throws(StoreError) {
        let position = try withLock { (held) throws(StoreError) -> LogPosition? in
            try held.checkOpen()
            guard !options.isReadOnly, let log = held.active?.log else { return nil }
            return LogPosition(endOf: log)
        }
        if let position { try sync(through: position) }
    }

    /// Makes everything durable, and then notes it in the log: an empty block whose mark covers
    /// all before it, so that later damage to the last commits is known for what it is.
    ///
    /// - Parameter isMarkDurable: whether to wait until the note is durable, too.
    func syncWithMark(isMarkDurable: Bool) throws(StoreError) {
        try syncAll()
        let isMarkDue = try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            // What somebody is about to add has a mark of its own.
            guard !options.isReadOnly, held.failure == nil, !held.isWritingWithoutLock,
                let log = held.active?.log,
                log.durable == log.appended, log.remainingPayload >= 0,
                !log.endsInMark, log.appended > FileHeader.byteCount
            else { return false }
            log.seal(payloadCount: 0)
            return true
        }
        if isMarkDue, isMarkDurable { try syncAll() }
    }
}

extension EngineState {
    /// Whether anything was written that is not known to be durable.
    var hasUnsynced: Bool {
        guard durability.unsynced.isEmpty else { return true }
        guard let log = active?.log else { return false }
        // An empty block at the end holds nothing: it tells how far the log is durable.
        return log.appended > max(log.durable, FileHeader.byteCount) && !log.endsInMark
    }
}

extension Engine {
    private func sync(through target: LogPosition) throws(StoreError) {
        try withLock { (held) throws(StoreError) in try held.sync(through: target) }
    }

    fileprivate func sync(
        _ older: [LogSegment], _ log: LogSegment, through offset: Int
    ) -> Result<Void, StoreError> {
        do {
            for earlier in older {
                try earlier.sync(through: earlier.appended)
            }
            try log.sync(through: offset)
            try ownership?.check()
            return .success(())
        } catch {
            return .failure(error)
        }
    }
}

extension EngineState {
    /// Group commit: one of those who wait syncs for all that has been appended by then; the
    /// others find that done, or the next of them syncs for the rest.
    ///
    /// Logs before the active one are synced first: a later commit is never durable before an
    /// earlier one. A failed sync stops the writer for good and is not repeated, since the kernel
    /// may have dropped the pages it could not write (Rebello et al., "Can Applications Recover
    /// from fsync Failures?", 2020).
    fileprivate func sync(through target: LogPosition) throws(StoreError) {
        guard durability.arrive(for: target) else { return }
        while durability.position < target {
            if failure != nil { try checkWritable() }
            guard !durability.isSyncing else {
                wait(for: durabilityChanged)
                continue
            }
            // Those who come at once after the sync before share this one.
            durability.lead { ticks }
            while durability.isGathering(at: { ticks }), failure == nil {
                yield()
            }
            guard let log = active?.log, failure == nil else {
                durability.giveUp()
                durabilityChanged.broadcast()
                try checkWritable()
                throw .closed(path)
            }
            let older = durability.beginSync(at: ticks)
            let offset = log.appended
            let start = ticks
            let result = unlocked { engine in engine.sync(older, log, through: offset) }
            noteSync(since: start)
            switch result {
            case .success:
                durability.endSync(of: older, log, through: offset, at: ticks)
                durabilityChanged.broadcast()
            case .failure(let error):
                durability.giveUp()
                stopWriting(error)
                throw error
            }
        }
    }
}
