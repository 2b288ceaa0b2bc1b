public import Tidemark

/// The answering side of an exchange: a hub, or any store that another one synchronises with.
///
/// It keeps nothing between requests but what is in the store, so requests may come over any
/// transport, in any order, twice or never. Thread-safe; calls block on the disk.
///
/// ```swift
/// let responder = SyncResponder(store: store)
/// try await dataset.synchronize(with: InMemoryTransport(responder))
/// ```
public final class SyncResponder: Sendable {
    /// What one answer may cost, whatever the asker wants.
    public struct Limits: Hashable, Sendable {
        /// About how many bytes of keys and values a page carries.
        public var pageBytesMax: Int
        /// How many records a page carries.
        public var pageRecordsMax: Int
        /// Larger requests are answered with `tooLarge`.
        public var requestBytesMax: Int
        /// A replica that has nothing of a dataset takes it over as it lies in the sealed segments
        /// if it has so many bytes there, else record by record: a segment costs its files and
        /// the time to make them durable. `Int.max`: always record by record.
        public var segmentBytesMin: Int
        /// Records that one answer to a sweep looks at, told or not.
        var sweptRecordsMax = SyncLimits.sweptRecordsMax
        /// Bytes of them.
        var sweptBytesMax = SyncLimits.sweptBytesMax

        public init(
            pageBytesMax: Int = 4 << 20, pageRecordsMax: Int = 32_768,
            requestBytesMax: Int = SyncLimits.messageBytesMax, segmentBytesMin: Int = 1 << 20
        ) {
            self.pageBytesMax = min(max(1, pageBytesMax), SyncLimits.pageBytesMax)
            self.pageRecordsMax = min(max(1, pageRecordsMax), SyncLimits.pageRecordsMax)
            self.requestBytesMax = requestBytesMax
            self.segmentBytesMin = max(0, segmentBytesMin)
        }
    }

    let store: Store
    let limits: Limits
    /// As in ``SyncOptions``.
    let comparesOneByOne: Bool
    let validate: (@Sendable (Record) throws -> Void)?
    let journal: SyncJournalOptions

    /// - Parameters:
    ///   - validate: asked about each record that is pushed, while no lock is held. If it throws,
    ///     the whole page is answered with `recordRefused`, and the asker finds out which record it
    ///     was and leaves that one out.
    ///   - journal: what is remembered of exchanges. A responder settles no conflicts.
    public convenience init(
        store: Store, limits: Limits = Limits(),
        validate: (@Sendable (Record) throws -> Void)? = nil,
        journal: SyncJournalOptions = SyncJournalOptions()
    ) {
        self.init(
            store: store, limits: limits, validate: validate, journal: journal,
            comparesOneByOne: false)
    }

    init(
        store: Store, limits: Limits = Limits(),
        validate: (@Sendable (Record) throws -> Void)? = nil,
        journal: SyncJournalOptions = SyncJournalOptions(), comparesOneByOne: Bool
    ) {
        self.store = store
        self.limits = limits
        self.validate = validate
        self.journal = journal.bounded
        self.comparesOneByOne = comparesOneByOne
    }

    /// Answers a request. Whatever the bytes are, the answer is a message; an error is one, too.
    public func respond(to request: [UInt8]) -> [UInt8] {
        let answer: SyncMessage
        do throws(SyncError) {
            answer = try self.answer(to: request)
            return try answer.encoded()
        } catch {
            return Self.encoded(error)
        }
    }

    private func answer(to request: [UInt8]) throws(SyncError) -> SyncMessage {
        guard request.count <= limits.requestBytesMax else {
            throw SyncError(
                .tooLarge,
                "a request of \(request.count) bytes exceeds \(limits.requestBytesMax); "
                    + "lower the page size or raise the peer's limit")
        }
        let frame = try MessageFrame.decoded(request)
        guard SyncLimits.protocolVersions.contains(frame.version) else {
            throw Self.mismatch(frame.version...frame.version)
        }
        switch try SyncMessage(frame) {
        case .hello(let request): return .helloAnswer(try answer(to: request))
        case .pull(let request): return .pullAnswer(try answer(to: request))
        case .push(let request): return .pushAnswer(try answer(to: request))
        case .reconcile(let request): return .reconcileAnswer(try answer(to: request))
        case .fetch(let request): return .fetchAnswer(try answer(to: request))
        case .segments(let request): return .segmentsAnswer(try answer(to: request))
        case .segmentRange(let request): return .segmentRangeAnswer(try answer(to: request))
        case .watch(let request): return .watchAnswer(try answer(to: request))
        case .scopedPull(let request): return .scopedPullAnswer(try answer(to: request))
        case .lookup(let request): return .lookupAnswer(try answer(to: request))
        case .partPush(let request):
            return .pushAnswer(try answer(to: request, isPart: true))
        case .records(let request): return .recordsAnswer(try answer(to: request))
        case .inquiry(let request): return .inquiryAnswer(try answer(to: request))
        case .burial(let request): return .burialAnswer(try answer(to: request))
        case .sweep(let request): return .sweepAnswer(try answer(to: request))
        case .helloAnswer, .pullAnswer, .pushAnswer, .reconcileAnswer, .fetchAnswer,
            .segmentsAnswer, .segmentRangeAnswer, .watchAnswer, .scopedPullAnswer, .lookupAnswer,
            .recordsAnswer, .inquiryAnswer, .burialAnswer, .sweepAnswer, .failure:
            throw .badMessage("an answer arrived where a request belongs")
        }
    }

    private func answer(to request: HelloRequest) throws(SyncError) -> HelloAnswer {
        guard request.versions.overlaps(SyncLimits.protocolVersions) else {
            throw Self.mismatch(request.versions)
        }
        // A copy of this store that has its id is answered: it takes a new one when it sees that.
        if request.incarnation == store.incarnation { try refuseSelf(request.from) }
        // Before the list is made: what changes meanwhile is listed again next time.
        let mark = try engine { () throws(StoreError) in
            request.names == nil && request.from != .nobody ? try store.changeMark() : nil
        }
        let (names, changedSince) = try wantedNames(request)
        var datasets: [DatasetGreeting] = []
        var vectorEntries = 0
        for name in names.prefix(SyncLimits.datasetsPerAnswerMax) {
            let greeting = try greeting(for: name, asker: request.from)
            vectorEntries += greeting.knowledge?.vector.count ?? 0
            vectorEntries += greeting.knowledge?.lifecycle.wiped.count ?? 0
            vectorEntries += greeting.knowledge?.forgotten.vector.count ?? 0
            if vectorEntries > SyncLimits.pageVectorEntriesMax, !datasets.isEmpty { break }
            datasets.append(greeting)
        }
        if request.from != .nobody, !has(.skipSyncBeforeSend) {
            // What the vectors speak of may be acted upon, so it must not be lost any more.
            try engine { () throws(StoreError) in try store.sync() }
        }
        return HelloAnswer(
            version: min(request.versions.upperBound, SyncLimits.protocolVersions.upperBound),
            replica: store.replicaID, datasets: datasets,
            isComplete: datasets.count == names.count, mark: mark, changedSince: changedSince)
    }

    private func wantedNames(
        _ request: HelloRequest
    ) throws(SyncError) -> (names: [String], changedSince: StoreMark?) {
        var names = request.names ?? []
        var changedSince: StoreMark?
        if request.names == nil {
            (names, changedSince) = try engine {
                () throws(StoreError) -> ([String], StoreMark?) in
                for mark in request.marks {
                    if let changed = try store.datasetsChanged(since: mark) {
                        return (changed, mark)
                    }
                }
                return (try store.datasetNamesForSync(), nil)
            }
        }
        names.sort()
        if let after = request.after { names.removeAll { $0 <= after } }
        return (names, changedSince)
    }

    private func greeting(
        for name: String, asker: ReplicaID
    ) throws(SyncError) -> DatasetGreeting {
        try engine(name) { () throws(StoreError) in
            guard let dataset = try store.datasetForSync(name, creating: false) else {
                return DatasetGreeting(
                    name: name, knowledge: nil, pulledThrough: .zero, pushedThrough: .zero)
            }
            let isPart = try PartBook.isPart(dataset)
            if asker != .nobody, !isPart { try dataset.admitDue() }
            let checkpoint = try dataset.checkpoint(for: asker)
            var knowledge = PeerKnowledge(try dataset.knowledge())
            // What a part has seen proves nothing about what is here.
            if isPart {
                (knowledge.vector, knowledge.forgotten) = (VersionVector(), ForgottenDeletions())
            }
            let book = try BatonBook(dataset)
            knowledge.batons = book.batons
            return DatasetGreeting(
                name: name, knowledge: knowledge, pulledThrough: checkpoint.pulledThrough,
                pushedThrough: checkpoint.pushedThrough, disputed: book.disputed,
                merged: try store.mergedDatasets(into: name))
        }
    }

    func refuseSelf(_ asker: ReplicaID) throws(SyncError) {
        guard asker != store.replicaID else { throw .sameReplica(asker) }
    }

    /// Refuses a request that was meant for another replica.
    func check(_ address: Address) throws(SyncError) {
        try refuseSelf(address.from)
        guard address.to == store.replicaID else { throw changed(address) }
    }

    /// Takes a new replica id if the asker shows that this store went back in time or was copied,
    /// and refuses a request that was made without knowing of it.
    ///
    /// - Parameter known: the disputed ids of this store of which the asker knows.
    func checkForks(
        _ vector: VersionVector, _ batons: [Baton], known: [ReplicaID], _ dataset: Dataset,
        _ address: Address
    ) throws(SyncError) {
        let isAgreed = try engine(dataset.name) { () throws(StoreError) in
            if try dataset.disputeForked(batons, vector) { return false }
            return Set(known).isSuperset(of: try BatonBook(dataset).disputed)
        }
        guard isAgreed else { throw changed(address) }
    }

    private func changed(_ address: Address) -> SyncError {
        SyncError(
            .peerChanged,
            "the peer is replica \(store.replicaID) and not, or no longer, \(address.to); "
                + "repeat the exchange", dataset: address.dataset)
    }

    private static func mismatch(_ theirs: ClosedRange<UInt16>) -> SyncError {
        let ours = SyncLimits.protocolVersions
        return SyncError(
            .protocolMismatch,
            "the peer speaks versions \(ours.lowerBound) to \(ours.upperBound) of the protocol, "
                + "the asker \(theirs.lowerBound) to \(theirs.upperBound); update the older one")
    }

    /// An error as a message.
    static func encoded(_ error: SyncError) -> [UInt8] {
        // A store that refuses an argument was asked for something impossible by the message.
        let isAskersFault = error.storeError?.code == .invalidArgument
        let code = isAskersFault ? SyncError.Code.badMessage : error.code
        let text = String(error.message.prefix(SyncLimits.failureTextBytesMax / 4))
        let failure = SyncMessage.failure(Failure(code: code.description, message: text))
        return (try? failure.encoded()) ?? []
    }
}
