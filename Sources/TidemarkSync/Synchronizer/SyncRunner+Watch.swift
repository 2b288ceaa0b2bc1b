import Tidemark

// One task asks the peer for news of all subscribed datasets and has them exchanged when there is
// any.
//
//   peer known? ─no─▶ a run ─▶ ...
//     │ yes
//     ▼
//   watch (waits at the peer) ─ news ─▶ a run of those datasets ─▶ ...
//
// A notice is a count. It counts as done when this side's checkpoint has reached it; as long as
// it has not (the run failed), the next question waits as after a failure. While a conflict waits
// to be settled, the peer announces nothing of it any more: its dataset is exchanged again after
// growing pauses of its own (`UnsettledDatasets`), and news of all others are waited for meanwhile.
//
// One watch names only so many datasets. More of them are asked about in several, a few of which
// wait at the same time, and the next few after them: the longest wait is shared out, so that news
// of any dataset come within it. Whichever brings news first ends the waits of the others. So that
// a dataset which changes all the time hides no other one, all are first asked without a wait, and
// what any of them tells is exchanged together.

extension SyncRunner {
    /// Until the task is cancelled.
    func watch(_ subscriptions: Subscriptions, _ queue: RunQueue) async {
        var failures = 0
        var unsettled = UnsettledDatasets(backOff: options.backOff)
        while !Task.isCancelled {
            var delay: Duration?
            var asked: Duration?
            do throws(SyncError) {
                switch try await step(subscriptions, queue, &unsettled) {
                case .goesOn: failures = 0
                case .rests:
                    failures = 0
                    delay = min(
                        options.pollInterval,
                        unsettled.pause(at: environment.now()) ?? options.pollInterval)
                case .isBehind: failures += 1
                }
            } catch {
                guard !Task.isCancelled else { return }
                failures += 1
                asked = error.retryAfter
                events.send(.backgroundFailure(error))
            }
            if failures > 0 {
                delay = options.backOff.delay(
                    after: failures, random: environment.random(), atLeast: asked)
            }
            guard let delay else { continue }
            do throws(CancellationError) {
                // Never none at all, whatever the options say: there may be no await in between.
                try await environment.sleep(for: max(delay, .milliseconds(1)))
            } catch {
                return
            }
        }
    }

    private enum Step {
        /// Ask again.
        case goesOn
        /// There was nothing, and the peer did not wait for it.
        case rests
        /// What was announced did not arrive, or there is no peer to ask yet.
        case isBehind
    }

    private func step(
        _ subscriptions: Subscriptions, _ queue: RunQueue, _ unsettled: inout UnsettledDatasets
    ) async throws(SyncError) -> Step {
        try await untilConnected()
        var names = subscriptions.names
        if subscriptions.isAll {
            let ours = try engine { () throws(StoreError) in try store.datasetNames() }
            names.formUnion(ours)
        }
        guard let peer = status.peer else {
            // Who the peer is, and what it has, an exchange tells.
            let outcome = await queue.runInBackground(names.isEmpty ? nil : names)
            if case .success(let report) = outcome {
                unsettled.note(
                    report.unsettled, of: Set(report.datasets.map(\.dataset)),
                    at: environment.now(), random: { environment.random() })
            }
            return status.peer == nil ? .isBehind : .goesOn
        }
        unsettled.keep(names)
        guard !names.isEmpty else { return .rests }
        let answer: WatchAnswer
        do throws(SyncError) {
            answer = try await news(
                of: names.subtracting(unsettled.silenced).sorted(), at: peer,
                atMost: unsettled.pause(at: environment.now()))
        } catch {
            guard error.code == .peerChanged else { throw error }
            forgetPeer()
            return .goesOn
        }
        let again = unsettled.due(at: environment.now())
        let due = again.union(answer.news.map(\.dataset))
        guard !due.isEmpty else { return answer.hasWaited ? .goesOn : .rests }
        let outcome = await queue.runInBackground(due)
        var left = unsettled.names
        if case .success(let report) = outcome { left = report.unsettled }
        unsettled.note(
            left, of: due, at: environment.now(), random: { environment.random() })
        var hasArrived = true
        for item in answer.news
        where try pulledThrough(item.dataset, of: peer) < item.since {
            if unsettled.names.contains(item.dataset) {
                unsettled.silence(item.dataset)
            } else {
                hasArrived = false
            }
        }
        if case .failure = outcome { return .isBehind }
        return hasArrived ? .goesOn : .isBehind
    }

    /// Up to which of the peer's changes of a dataset everything is here.
    func pulledThrough(_ name: String, of peer: ReplicaID) throws(SyncError) -> SyncCount {
        try engine(name) { () throws(StoreError) in
            try store.datasetForSync(name, creating: false)?.checkpoint(for: peer).pulledThrough
                ?? .zero
        }
    }

    // MARK: - Asking

    /// What is ahead at the peer: at once, or when there is any, or nothing after a while.
    ///
    /// - Parameter bound: how long to wait at most; nil for as long as a watch may. With zero it is
    ///   told at once, of nothing, too.
    private func news(
        of names: [String], at peer: ReplicaID, atMost bound: Duration?
    ) async throws(SyncError) -> WatchAnswer {
        guard !names.isEmpty else { return WatchAnswer(hasWaited: false, news: []) }
        let isWaiting = bound.map { $0 > .zero } ?? true
        let chunks = stride(from: 0, to: names.count, by: options.watchItemsMax).map { start in
            Array(names[start...].prefix(options.watchItemsMax))
        }
        let rounds = stride(from: 0, to: chunks.count, by: SyncLimits.watchesAtOnceMax).map {
            Array(chunks[$0...].prefix(SyncLimits.watchesAtOnceMax))
        }
        var answer = WatchAnswer(hasWaited: true, news: [])
        if chunks.count > 1 || !isWaiting {
            for round in rounds {
                let next = try await ask(round, peer, milliseconds: 0)
                answer.news += next.news
            }
            guard answer.news.isEmpty, isWaiting else { return answer }
        }
        // Rounded up: no time is spent on asking again before a pause is over.
        let longest = min(
            bound?.millisecondsRoundedUp ?? SyncLimits.watchMillisecondsMax,
            SyncLimits.watchMillisecondsMax)
        let wait = max(
            longest / max(rounds.count, 1), min(longest, SyncLimits.watchMillisecondsMin))
        for round in rounds {
            let next = try await ask(round, peer, milliseconds: wait)
            guard next.news.isEmpty else { return next }
            answer.hasWaited = answer.hasWaited && next.hasWaited
        }
        return answer
    }

    /// Asks several questions at the same time. If they are to wait, the first news end them all.
    private func ask(
        _ questions: [[String]], _ peer: ReplicaID, milliseconds: Int
    ) async throws(SyncError) -> WatchAnswer {
        let (answer, failure) = await withTaskGroup(
            of: Result<WatchAnswer, SyncError>.self
        ) { group in
            for names in questions {
                group.addTask {
                    do throws(SyncError) {
                        return .success(try await self.ask(names, peer, milliseconds))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            var answer = WatchAnswer(hasWaited: true, news: [])
            var failure: SyncError?
            for await result in group {
                switch result {
                case .success(let next):
                    answer.hasWaited = answer.hasWaited && next.hasWaited
                    answer.news += next.news
                case .failure(let error):
                    failure = failure ?? error
                }
                if failure != nil || (milliseconds > 0 && !answer.news.isEmpty) {
                    group.cancelAll()
                }
            }
            return (answer, failure)
        }
        // A question that was cut off, or failed, is asked again after what is known is exchanged.
        if let failure, answer.news.isEmpty { throw failure }
        return answer
    }

    private func ask(
        _ names: [String], _ peer: ReplicaID, _ milliseconds: Int
    ) async throws(SyncError) -> WatchAnswer {
        var items: [WatchRequest.Item] = []
        for name in names {
            items.append(
                WatchRequest.Item(dataset: name, since: try pulledThrough(name, of: peer)))
        }
        return try await PeerConnection(transport: transport).watch(
            WatchRequest(
                from: store.replicaID, to: peer, waitMilliseconds: milliseconds, items: items))
    }
}

extension SyncReport {
    /// Datasets with conflicts that wait.
    fileprivate var unsettled: Set<String> {
        Set(datasets.filter { $0.error?.code == .conflictPending }.map(\.dataset))
    }
}
