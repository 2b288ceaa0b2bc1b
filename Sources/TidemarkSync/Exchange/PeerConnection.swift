import Tidemark

/// Asks a peer questions and checks that what comes back is an answer to them.
struct PeerConnection: Sendable {
    /// What one question and its answer took, in bytes on the wire.
    struct Traffic {
        var sent = 0
        var received = 0
    }

    let transport: any SyncTransport

    /// Says hello for a store, under a new id if the peer turns out to be a copy of the store that
    /// has the same one.
    ///
    /// - Parameters:
    ///   - isDryRun: whether to ask as nobody.
    ///   - marks: of peers, that were kept.
    /// - Returns: with the answer the id that the store had when it asked.
    /// - Throws: `sameReplica` if the peer is this very store.
    func hello(
        from store: Store, isDryRun: Bool, names: [String]?, after: String? = nil,
        marks: [StoreMark] = [], _ traffic: inout Traffic
    ) async throws(SyncError) -> (answer: HelloAnswer, asker: ReplicaID) {
        for _ in 0..<2 {
            let asker = store.replicaID
            let answer = try await hello(
                HelloRequest(
                    versions: SyncLimits.protocolVersions, from: isDryRun ? .nobody : asker,
                    names: names, after: after, incarnation: store.incarnation, marks: marks),
                &traffic)
            if answer.replica != asker { return (answer, asker) }
            // Both would go on using the same dots. What either wrote since the copy was made
            // shows as soon as the other one's batons are seen.
            try engine { () throws(StoreError) in try store.renewReplicaID() }
        }
        throw SyncError.sameReplica(store.replicaID)
    }

    func hello(
        _ request: HelloRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> HelloAnswer {
        let answer = try await ask(.hello(request), &traffic)
        guard case .helloAnswer(let hello) = answer else { throw Self.misplaced(answer) }
        guard request.versions.contains(hello.version) else {
            throw SyncError(
                .protocolMismatch,
                "the peer chose version \(hello.version) of the protocol, which was not offered; "
                    + "update this side")
        }
        guard hello.isComplete || !hello.datasets.isEmpty else {
            throw .badMessage("the peer's list of datasets does not go on")
        }
        guard hello.changedSince.map(request.marks.contains) ?? true else {
            throw .badMessage("the peer lists what changed since a moment that nobody named")
        }
        try check(hello.datasets, answer: request)
        return hello
    }

    /// The list must go on after what came before, or it would never end, and name nothing that
    /// was not asked for, or a peer could draw out of us what is not meant for it.
    private func check(
        _ datasets: [DatasetGreeting], answer request: HelloRequest
    ) throws(SyncError) {
        let wanted = request.names.map { Set($0) }
        var last = request.after
        for dataset in datasets {
            guard last.map({ $0 < dataset.name }) ?? true else {
                throw .badMessage("the peer's list of datasets is not in order")
            }
            guard wanted?.contains(dataset.name) ?? true else {
                throw .badMessage("the peer tells of a dataset that it was not asked about")
            }
            last = dataset.name
        }
    }

    /// A page that stands still and is not the last would be asked for without end.
    private static func check(
        _ page: RecordPage, goesOnAfter since: SyncCount
    ) throws(SyncError) {
        guard page.through >= since, page.isLast || page.through > since else {
            throw .badMessage("the peer's changes do not go on after \(since)")
        }
    }

    func pull(
        _ request: PullRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> PullAnswer {
        let answer = try await ask(.pull(request), &traffic)
        guard case .pullAnswer(let pulled) = answer else { throw Self.misplaced(answer) }
        try Self.check(pulled.page, goesOnAfter: request.since)
        return pulled
    }

    /// - Parameter isPart: whether the asker keeps only a part of the dataset.
    func push(
        _ request: PushRequest, isPart: Bool = false, _ traffic: inout Traffic
    ) async throws(SyncError) -> PushAnswer {
        let answer = try await ask(isPart ? .partPush(request) : .push(request), &traffic)
        guard case .pushAnswer(let pushed) = answer else { throw Self.misplaced(answer) }
        if case .gap(let syncCount) = pushed.outcome, syncCount >= request.since {
            throw .badMessage("the peer reports a gap where there is none")
        }
        return pushed
    }

    func reconcile(
        _ request: ReconcileRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> ReconcileAnswer {
        let answer = try await ask(.reconcile(request), &traffic)
        guard case .reconcileAnswer(let told) = answer else { throw Self.misplaced(answer) }
        guard !told.findings.isEmpty, told.findings.count <= request.ranges.count,
            zip(told.findings, request.ranges).allSatisfy({ $0.fits($1.range) })
        else { throw .badMessage("the peer tells of ranges that it was not asked about") }
        return told
    }

    func fetch(
        _ request: FetchRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> FetchAnswer {
        let answer = try await ask(.fetch(request), &traffic)
        guard case .fetchAnswer(let fetched) = answer else { throw Self.misplaced(answer) }
        guard fetched.lookedAt > 0, fetched.lookedAt <= request.keys.count else {
            throw .badMessage("the peer looked at \(fetched.lookedAt) of the keys")
        }
        let asked = Set(request.keys.prefix(fetched.lookedAt))
        guard let page = fetched.page.arrived,
            page.items.indices.allSatisfy({ asked.contains(page.key(at: $0)) })
        else {
            throw .badMessage("the peer sends records that it was not asked for")
        }
        return fetched
    }

    func scopedPull(
        _ request: ScopedPullRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> ScopedPullAnswer {
        let answer = try await ask(.scopedPull(request), &traffic)
        guard case .scopedPullAnswer(let pulled) = answer else { throw Self.misplaced(answer) }
        try Self.check(pulled.page, goesOnAfter: request.since)
        return pulled
    }

    func lookUp(
        _ request: LookupRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> LookupAnswer {
        let answer = try await ask(.lookup(request), &traffic)
        guard case .lookupAnswer(let found) = answer else { throw Self.misplaced(answer) }
        guard found.answered > 0, found.answered <= request.items.count else {
            throw .badMessage("the peer answers for more or fewer keys than it was asked about")
        }
        let asked = Set(request.items.prefix(found.answered).map(\.key))
        let told = found.page.records.map(\.key) + found.outside.map(\.key) + found.missing
        guard told.count == Set(told).count, asked.isSuperset(of: told) else {
            throw .badMessage("the peer answers for keys that it was not asked about")
        }
        return found
    }

    /// Returns when something changed, the time is over, or the responder cannot wait.
    func watch(_ request: WatchRequest) async throws(SyncError) -> WatchAnswer {
        var traffic = Traffic()
        // What need not wait goes the way of every other question.
        let isWatch = request.waitMilliseconds > 0
        let answer = try await ask(.watch(request), &traffic, isWatch: isWatch)
        guard case .watchAnswer(let watched) = answer else { throw Self.misplaced(answer) }
        let known = Dictionary(
            request.items.map { ($0.dataset, $0.since) }, uniquingKeysWith: { first, _ in first })
        for item in watched.news {
            guard let since = known[item.dataset], item.since > since else {
                throw .badMessage("the peer announces what it was not asked about")
            }
        }
        return watched
    }

    func records(
        _ request: RecordsRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> RecordsAnswer {
        let answer = try await ask(.records(request), &traffic)
        guard case .recordsAnswer(let fetched) = answer else { throw Self.misplaced(answer) }
        let keys = Set(request.keys.prefix(fetched.answered))
        guard (1...request.keys.count).contains(fetched.answered),
            fetched.page.records.allSatisfy({ keys.contains($0.key) })
        else {
            throw .badMessage("the peer's records are not those that it was asked for")
        }
        return fetched
    }

    func sweep(
        _ request: SweepRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> SweepAnswer {
        let answer = try await ask(.sweep(request), &traffic)
        guard case .sweepAnswer(let swept) = answer else { throw Self.misplaced(answer) }
        let start = request.start.isEmpty ? nil : request.start
        let goesOn = swept.next.map { request.start.lexicographicallyPrecedes($0) } ?? true
        guard goesOn, let page = swept.page.arrived,
            page.isInOrder(within: KeyRange(from: start, upTo: swept.next))
        else {
            throw .badMessage("the peer's records are not those of the keys it was asked for")
        }
        return swept
    }

    func segments(
        _ request: SegmentsRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> SegmentsAnswer {
        let answer = try await ask(.segments(request), &traffic)
        guard case .segmentsAnswer(let segments) = answer else { throw Self.misplaced(answer) }
        return segments
    }

    /// nil if the segment is gone.
    func segmentRange(
        _ request: SegmentRangeRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> StoredBlocks? {
        let answer = try await ask(.segmentRange(request), &traffic)
        guard case .segmentRangeAnswer(let range) = answer else { throw Self.misplaced(answer) }
        guard let blocks = range.blocks else { return nil }
        guard blocks.next > request.first, blocks.next - request.first <= request.count else {
            throw .badMessage("the peer's blocks do not go on after \(request.first)")
        }
        return blocks
    }

    func offerSegments(
        _ request: SegmentsPushRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> [SegmentsPushAnswer.Wanted]? {
        let answer = try await ask(.segmentsPush(request), &traffic)
        guard case .segmentsPushAnswer(let told) = answer else { throw Self.misplaced(answer) }
        return told.wanted
    }

    func pushSegmentRange(
        _ request: SegmentRangePushRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> SegmentRangePushAnswer {
        let answer = try await ask(.segmentRangePush(request), &traffic)
        guard case .segmentRangePushAnswer(let told) = answer else { throw Self.misplaced(answer) }
        return told
    }

    func inquire(
        _ request: InquiryRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> InquiryAnswer {
        let answer = try await ask(.inquiry(request), &traffic)
        guard case .inquiryAnswer(let told) = answer else { throw Self.misplaced(answer) }
        guard told.absent.last.map({ $0 < request.page.recordCount }) ?? true else {
            throw .badMessage("the peer answers about a record that it was not asked about")
        }
        return told
    }

    func bury(
        _ request: BurialRequest, _ traffic: inout Traffic
    ) async throws(SyncError) -> BurialAnswer {
        let answer = try await ask(.burial(request), &traffic)
        guard case .burialAnswer(let told) = answer else { throw Self.misplaced(answer) }
        return told
    }

    private func ask(
        _ message: SyncMessage, _ traffic: inout Traffic, isWatch: Bool = false
    ) async throws(SyncError) -> SyncMessage {
        guard !Task.isCancelled else { throw .cancelled() }
        let request = try message.encoded()
        traffic.sent += request.count
        let bytes: [UInt8]
        do throws(SyncError) {
            bytes =
                isWatch ? try await transport.watch(request) : try await transport.send(request)
        } catch {
            // Whatever a transport makes of it.
            throw Task.isCancelled ? .cancelled() : error
        }
        guard !Task.isCancelled else { throw .cancelled() }
        traffic.received += bytes.count
        let frame = try MessageFrame.decoded(bytes)
        // A refusal reads the same in every version, so that it can say which versions there are.
        guard
            SyncLimits.protocolVersions.contains(frame.version)
                || frame.kind == MessageKind.failure.rawValue
        else {
            throw SyncError(
                .protocolMismatch,
                "the peer answered in version \(frame.version) of the protocol; "
                    + "update the older side")
        }
        let answer = try SyncMessage(frame)
        if case .failure(let failure) = answer {
            throw SyncError(Self.codes[failure.code] ?? .peerFailed, failure.message)
        }
        return answer
    }

    /// The codes that mean the same whichever side they arise on.
    private static let codes: [String: SyncError.Code] = [
        "\(SyncError.Code.protocolMismatch)": .protocolMismatch,
        "\(SyncError.Code.badMessage)": .badMessage,
        "\(SyncError.Code.tooLarge)": .tooLarge,
        "\(SyncError.Code.recordRefused)": .recordRefused,
        "\(SyncError.Code.contended)": .contended,
        "\(SyncError.Code.sameReplica)": .sameReplica,
        "\(SyncError.Code.peerChanged)": .peerChanged,
        "\(SyncError.Code.partialReplica)": .partialReplica,
        "\(SyncError.Code.recordsMoved)": .recordsMoved,
    ]

    private static func misplaced(_ message: SyncMessage) -> SyncError {
        .badMessage("the peer answered with a message of kind \(message.kind.rawValue)")
    }
}
