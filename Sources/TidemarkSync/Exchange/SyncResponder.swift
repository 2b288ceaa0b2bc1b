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
        /// What the peer may store here, for one that is not trusted; nil for whatever it likes.
        public var quota: SyncQuota?
        /// Records that one answer to a sweep looks at, told or not.
        var sweptRecordsMax = SyncLimits.sweptRecordsMax
        /// Bytes of them.
        var sweptBytesMax = SyncLimits.sweptBytesMax
        /// Bytes that one push lets be written anew.
        var renewedBytesMax = SyncLimits.renewedBytesMax

        public init(
            pageBytesMax: Int = 4 << 20, pageRecordsMax: Int = 32_768,
            requestBytesMax: Int = SyncLimits.messageBytesMax, segmentBytesMin: Int = 1 << 20,
            quota: SyncQuota? = nil
        ) {
            self.pageBytesMax = min(max(1, pageBytesMax), SyncLimits.pageBytesMax)
            self.pageRecordsMax = min(max(1, pageRecordsMax), SyncLimits.pageRecordsMax)
            self.requestBytesMax = requestBytesMax
            self.segmentBytesMin = max(0, segmentBytesMin)
            self.quota = quota
        }
    }

    let store: Store
    let namespace: DatasetNamespace
    let limits: Limits
    /// As in ``SyncOptions``.
    let comparesOneByOne: Bool
    let validate: (@Sendable (Record) throws -> Void)?
    let journal: SyncJournalOptions
    let observer: PushObserver?

    /// - Parameters:
    ///   - namespace: which datasets of the store the peers can name, and how.
    ///   - validate: asked about each record that is pushed, while no lock is held. If it throws,
    ///     the whole page is answered with `recordRefused`, and the asker finds out which record it
    ///     was and leaves that one out.
    ///   - journal: what is remembered of exchanges. A responder settles no conflicts.
    public convenience init(
        store: Store, namespace: DatasetNamespace = .all, limits: Limits = Limits(),
        validate: (@Sendable (Record) throws -> Void)? = nil,
        journal: SyncJournalOptions = SyncJournalOptions()
    ) {
        self.init(
            store: store, namespace: namespace, limits: limits, validate: validate,
            journal: journal, observer: nil)
    }

    /// - Parameter observer: told of each dataset that a peer is about to change, and when it has.
    package convenience init(
        store: Store, namespace: DatasetNamespace, limits: Limits,
        validate: (@Sendable (Record) throws -> Void)?, journal: SyncJournalOptions,
        observer: PushObserver?
    ) {
        self.init(
            store: store, namespace: namespace, limits: limits, validate: validate,
            journal: journal, observer: observer, comparesOneByOne: false)
    }

    init(
        store: Store, namespace: DatasetNamespace = .all, limits: Limits = Limits(),
        validate: (@Sendable (Record) throws -> Void)? = nil,
        journal: SyncJournalOptions = SyncJournalOptions(), observer: PushObserver? = nil,
        comparesOneByOne: Bool
    ) {
        self.store = store
        self.namespace = namespace
        self.limits = limits
        self.validate = validate
        self.journal = journal.bounded
        self.observer = observer
        self.comparesOneByOne = comparesOneByOne
    }

    /// Answers a request. Whatever the bytes are, the answer is a message; an error is one, too.
    public func respond(to request: [UInt8]) -> [UInt8] {
        do throws(SyncError) {
            return try answered(request)
        } catch {
            return encoded(error)
        }
    }

    /// The same, for a server that wants to know what went wrong; ``encoded(_:)`` makes the answer
    /// of it.
    package func answered(_ request: [UInt8]) throws(SyncError) -> [UInt8] {
        let message = try message(in: request)
        if let address = message.address {
            try admitPeer(address)
            try meetMoved(address)
        }
        return try answer(to: message).leaving(namespace).encoded()
    }

    /// A request as the store calls what it is about.
    private func message(in request: [UInt8]) throws(SyncError) -> SyncMessage {
        guard request.count <= limits.requestBytesMax else {
            throw SyncError(
                .tooLarge,
                "a request of \(request.count) bytes exceeds \(limits.requestBytesMax); "
                    + "lower the page size or raise the peer's limit")
        }
        let bounds = limits.messageBounds
        let frame = try MessageFrame.decoded(request, bodyBytesMax: bounds.bodyBytesMax)
        guard SyncLimits.protocolVersions.contains(frame.version) else {
            throw Self.mismatch(frame.version...frame.version)
        }
        return try SyncMessage(frame, bounds).entering(namespace)
    }

    /// Tells an asker nothing of a dataset from which records went into another one that the asker
    /// is not known to have.
    private func meetMoved(_ address: Address) throws(SyncError) {
        guard address.from != .nobody else { return }
        let waits = try engine(address.dataset) { () throws(StoreError) -> Bool in
            guard let dataset = try store.datasetForSync(address.dataset, creating: false) else {
                return false
            }
            return try dataset.waitsForMoved(with: address.from, in: namespace)
        }
        guard !waits else {
            throw SyncError(
                .recordsMoved,
                "records went from the dataset into another one at the peer, which has to be "
                    + "exchanged first; exchange all datasets", dataset: address.dataset)
        }
    }

    /// Notes where records went, before anything of an asker's is taken in that has them deleted.
    /// It has handed them over by then.
    func noteMoved(_ address: Address, _ dataset: Dataset) throws(SyncError) {
        guard !store.options.isReadOnly else { return }
        try engine(dataset.name) { () throws(StoreError) in
            try dataset.noteMoved(into: address.moved)
        }
    }

    private func answer(to message: SyncMessage) throws(SyncError) -> SyncMessage {
        switch message {
        case .hello(let request): return .helloAnswer(try answer(to: request))
        case .pull(let request): return .pullAnswer(try answer(to: request))
        case .push(let request): return .pushAnswer(try answer(to: request))
        case .reconcile(let request): return .reconcileAnswer(try answer(to: request))
        case .fetch(let request): return .fetchAnswer(try answer(to: request))
        case .segments(let request): return .segmentsAnswer(try answer(to: request))
        case .segmentRange(let request): return .segmentRangeAnswer(try answer(to: request))
        case .segmentsPush(let request): return .segmentsPushAnswer(try answer(to: request))
        case .segmentRangePush(let request):
            return .segmentRangePushAnswer(try answer(to: request))
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
            .segmentsAnswer, .segmentRangeAnswer, .segmentsPushAnswer, .segmentRangePushAnswer,
            .watchAnswer, .scopedPullAnswer, .lookupAnswer, .recordsAnswer, .inquiryAnswer,
            .burialAnswer, .sweepAnswer, .failure:
            throw .badMessage("an answer arrived where a request belongs")
        }
    }

    private func answer(to request: HelloRequest) throws(SyncError) -> HelloAnswer {
        guard request.versions.overlaps(SyncLimits.protocolVersions) else {
            throw Self.mismatch(request.versions)
        }
        // A copy of this store that has its id is answered: it takes a new one when it sees that.
        if request.incarnation == store.incarnation { try refuseSelf(request.from) }
        let isMarked = request.names == nil && request.from != .nobody && keepsMarks
        // Who asks only about what has changed must be told of what counts from now on. What
        // concerns all datasets the rest of the answer meets, too.
        if isMarked, request.after == nil { try? admitDue() }
        // Before the list is made: what changes meanwhile is listed again next time.
        let mark = try engine { () throws(StoreError) in
            isMarked ? try store.changeMark() : nil
        }
        let (names, changedSince) = try wantedNames(request)
        var datasets: [DatasetGreeting] = []
        var vectorEntries = 0
        for name in names.prefix(SyncLimits.datasetsPerAnswerMax) {
            let greeting = try greeting(
                for: name, asker: request.from, isAlone: request.names?.count == 1)
            vectorEntries += greeting.knowledge?.vector.count ?? 0
            vectorEntries += greeting.knowledge?.lifecycle.wiped.count ?? 0
            vectorEntries += greeting.knowledge?.forgotten.vector.count ?? 0
            if vectorEntries > SyncLimits.pageVectorEntriesMax, !datasets.isEmpty { break }
            datasets.append(greeting)
        }
        if request.from != .nobody {
            // What the vectors speak of may be acted upon, so it must not be lost any more.
            try engine { () throws(StoreError) in try store.syncBeforeSending() }
        }
        return HelloAnswer(
            version: min(request.versions.upperBound, SyncLimits.protocolVersions.upperBound),
            replica: store.replicaID, datasets: datasets,
            isComplete: datasets.count == names.count, mark: mark, changedSince: changedSince)
    }

    /// Lets in what is held and need not be any more, of all datasets. O(held) if anything was held
    /// or let in since the last time, or a date has come; else O(1).
    ///
    /// What cannot be let in, as where the store is damaged, stays held, and is no reason to refuse
    /// an exchange of other datasets.
    private func admitDue() throws(StoreError) {
        guard let book = try store.existingSystemDataset(.quarantine) else { return }
        // Before the look: what is held or let in meanwhile is looked at again.
        let syncCount = try book.knowledge().syncCount
        guard store.heldLooks.isDue(at: syncCount, by: store.latestBelieved) else { return }
        let held = try QuarantineBook.overview(of: store)
        for name in held.names where namespace.contains(name) { try? admitDue(name) }
        store.heldLooks.note(at: syncCount, next: held.firstDate)
    }

    private func admitDue(_ name: String) throws(StoreError) {
        guard let dataset = try store.datasetForSync(name, creating: false),
            try !PartBook.isPart(dataset)
        else { return }
        try admitDue(dataset)
    }

    private func admitDue(_ dataset: Dataset) throws(StoreError) {
        guard let observer else {
            try dataset.admitDue()
            return
        }
        guard try !QuarantineBook(dataset).isEmpty() else { return }
        try observer.willChange(dataset.name)
        defer { observer.didChange(dataset.name) }
        try dataset.admitDue()
    }

    /// Marks are of all datasets of the store. Who sees only a few of them is told of all of these.
    private var keepsMarks: Bool { namespace.prefix.isEmpty }

    private func wantedNames(
        _ request: HelloRequest
    ) throws(SyncError) -> (names: [String], changedSince: StoreMark?) {
        var names = request.names ?? []
        var changedSince: StoreMark?
        if request.names == nil {
            (names, changedSince) = try engine {
                () throws(StoreError) -> ([String], StoreMark?) in
                guard keepsMarks else {
                    // One more than an answer holds, by which it is known whether it is all.
                    let names = try store.datasetNamesForSync(
                        prefix: namespace.prefix, after: request.after,
                        limit: SyncLimits.datasetsPerAnswerMax + 1)
                    return (names, nil)
                }
                for mark in request.marks {
                    if let changed = try store.datasetsChanged(since: mark) {
                        return (changed, mark)
                    }
                }
                return (try store.datasetNamesForSync(), nil)
            }
            names.removeAll { !namespace.contains($0) }
        }
        names.sort()
        if let after = request.after { names.removeAll { $0 <= after } }
        return (names, changedSince)
    }

    /// - Parameter isAlone: whether the asker wants to know of no other dataset. Else what is held
    ///   and cannot be let in stays held, as in ``admitDue()``.
    private func greeting(
        for name: String, asker: ReplicaID, isAlone: Bool
    ) throws(SyncError) -> DatasetGreeting {
        try engine(name) { () throws(StoreError) in
            guard let dataset = try store.datasetForSync(name, creating: false) else {
                return DatasetGreeting(
                    name: name, knowledge: nil, pulledThrough: .zero, pushedThrough: .zero)
            }
            let isPart = try PartBook.isPart(dataset)
            if asker != .nobody, !isPart {
                do throws(StoreError) {
                    try admitDue(dataset)
                } catch {
                    if isAlone { throw error }
                }
            }
            // What a part has seen proves nothing about what is here, nor how far it has come: of
            // what it was told it has just what belongs to it. An asker that lets records go once
            // the peer has them would let them go for nothing.
            let checkpoint = try isPart ? PeerCheckpoint() : dataset.checkpoint(for: asker)
            var knowledge = PeerKnowledge(try dataset.knowledge())
            if isPart {
                (knowledge.vector, knowledge.forgotten) = (VersionVector(), ForgottenDeletions())
            }
            let book = try BatonBook(dataset)
            knowledge.batons = book.batons
            return DatasetGreeting(
                name: name, knowledge: knowledge, pulledThrough: checkpoint.pulledThrough,
                pushedThrough: checkpoint.pushedThrough, disputed: book.disputed,
                merged: try store.mergedDatasets(into: name), moved: try dataset.movedInto(),
                isPart: isPart)
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
            let isForked = try dataset.disputeForked(
                batons, vector, isTrusted: limits.quota == nil)
            if isForked { return false }
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
