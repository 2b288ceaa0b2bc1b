import Tidemark

// How changes are announced: by an answer that is late on purpose.
//
// The asker names datasets and the counts it knows of; the answer comes when one of them is ahead,
// or when the time that the asker gave is over. What is announced is nothing but a count, so a
// notice that is lost, late or repeated does no harm: the asker then exchanges as ever, or sees
// that it has that count already.

extension SyncResponder {
    /// Answers a request like ``respond(to:)``, but lets one that watches for changes wait for
    /// them, as long as it asks for and at most ``SyncLimits/watchMillisecondsMax``. No thread
    /// waits with it. Other requests are answered on the calling task, which they may block.
    ///
    /// Cancelling the task ends the wait, and the answer is that nothing changed.
    public func watch(
        _ request: [UInt8], environment: any SyncEnvironment = SystemSyncEnvironment()
    ) async -> [UInt8] {
        guard let watch = watchRequest(request), watch.waitMilliseconds > 0 else {
            return respond(to: request)
        }
        let answer: SyncMessage
        do throws(SyncError) {
            answer = .watchAnswer(try await waited(watch, environment))
            return try answer.leaving(namespace).encoded()
        } catch {
            return encoded(error)
        }
    }

    /// nil if it is another message or none: then it is answered as any.
    private func watchRequest(_ request: [UInt8]) -> WatchRequest? {
        guard request.count <= limits.requestBytesMax,
            MessageLabel.isWatch(request),
            let frame = try? MessageFrame.decoded(
                request, bodyBytesMax: limits.messageBounds.bodyBytesMax),
            SyncLimits.protocolVersions.contains(frame.version),
            case .watch(let watch) = try? SyncMessage(frame, limits.messageBounds)
                .entering(namespace)
        else { return nil }
        return watch
    }

    /// At once, with what is ahead now.
    func answer(to request: WatchRequest) throws(SyncError) -> WatchAnswer {
        let counts = try counts(of: request)
        let ahead = try engine { () throws(StoreError) in try store.datasetsAhead(of: counts) }
        return WatchAnswer(hasWaited: false, ahead)
    }

    private func waited(
        _ request: WatchRequest, _ environment: any SyncEnvironment
    ) async throws(SyncError) -> WatchAnswer {
        let counts = try counts(of: request)
        let store = store
        let wait = Duration.milliseconds(request.waitMilliseconds)
        let result = await withTaskGroup(
            of: Result<[String: SyncCount], StoreError>.self
        ) { group in
            group.addTask {
                do throws(StoreError) {
                    return .success(try await store.untilAhead(of: counts))
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                try? await environment.sleep(for: wait)
                return .success([:])
            }
            // Whichever is first: a change, the end of the time, or of this task.
            let first = await group.next() ?? .success([:])
            group.cancelAll()
            return first
        }
        switch result {
        case .success(let ahead): return WatchAnswer(hasWaited: true, ahead)
        case .failure(let error): throw SyncError(error)
        }
    }

    private func counts(of request: WatchRequest) throws(SyncError) -> [String: SyncCount] {
        try refuseSelf(request.from)
        guard request.to == store.replicaID else {
            throw SyncError(
                .peerChanged,
                "the peer is replica \(store.replicaID) and not, or no longer, \(request.to); "
                    + "exchange anew before watching")
        }
        return Dictionary(
            request.items.map { ($0.dataset, $0.since) }, uniquingKeysWith: { min($0, $1) })
    }
}

extension WatchAnswer {
    fileprivate init(hasWaited: Bool, _ ahead: [String: SyncCount]) {
        self.hasWaited = hasWaited
        news = ahead.sorted { $0.key < $1.key }.map {
            WatchRequest.Item(dataset: $0.key, since: $0.value)
        }
    }
}
