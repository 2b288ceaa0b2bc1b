import Tidemark

// Where a peer's names of datasets become the store's, and the other way round. Names stand
// - in the address of each request about one dataset, with those into which records went from it;
// - in a hello: the wanted ones, and the one after which the list is to go on; in its answer with
//   each dataset, with those that are to go into it and those into which records went from it;
// - in a watch and its answer;
// - in the words of a failure.
// Vectors, marks, pages and blocks of segments name datasets by nothing, or by a number that means
// nothing outside of the message.

extension SyncMessage {
    /// A request as the store calls what it is about.
    ///
    /// - Throws: `badMessage` if the peer cannot name such a dataset.
    func entering(_ namespace: DatasetNamespace) throws(SyncError) -> SyncMessage {
        switch self {
        case .hello(var request):
            // Of a name that it cannot use the asker is told nothing, as of one that is not known
            // here; a refusal would be one of all the others, too.
            request.names = request.names.map { names in
                names.compactMap { try? namespace.storeName(of: $0) }
            }
            request.after = request.after.map { namespace.prefix + $0 }
            return .hello(request)
        case .watch(var request):
            for index in request.items.indices {
                let name = request.items[index].dataset
                request.items[index].dataset = try namespace.storeName(of: name)
            }
            return .watch(request)
        default:
            guard let address else { return self }
            var entered = address
            entered.dataset = try namespace.storeName(of: address.dataset)
            entered.moved = address.moved.compactMap { try? namespace.storeName(of: $0) }
            return addressed(entered)
        }
    }

    /// An answer as the peer calls what it is about. What it cannot name is left out.
    func leaving(_ namespace: DatasetNamespace) -> SyncMessage {
        switch self {
        case .helloAnswer(var answer):
            answer.datasets = answer.datasets.compactMap { greeting -> DatasetGreeting? in
                guard let name = namespace.peerName(of: greeting.name) else { return nil }
                var told = greeting
                told.name = name
                told.merged = greeting.merged.compactMap { merged in
                    namespace.peerName(of: merged.name).map {
                        MergedDataset(name: $0, origin: merged.origin)
                    }
                }
                told.moved = greeting.moved.compactMap { namespace.peerName(of: $0) }
                return told
            }
            return .helloAnswer(answer)
        case .watchAnswer(var answer):
            answer.news = answer.news.compactMap { item in
                namespace.peerName(of: item.dataset).map {
                    WatchRequest.Item(dataset: $0, since: item.since)
                }
            }
            return .watchAnswer(answer)
        default:
            return self
        }
    }

    /// Of a request about one dataset; nil for others and for answers.
    var address: Address? {
        switch self {
        case .pull(let request): request.address
        case .push(let request), .partPush(let request): request.address
        case .reconcile(let request): request.address
        case .fetch(let request): request.address
        case .segments(let request): request.address
        case .segmentRange(let request): request.address
        case .segmentsPush(let request): request.address
        case .segmentRangePush(let request): request.address
        case .scopedPull(let request): request.address
        case .lookup(let request): request.address
        case .records(let request): request.address
        case .inquiry(let request): request.address
        case .burial(let request): request.address
        case .sweep(let request): request.address
        case .hello, .watch, .helloAnswer, .pullAnswer, .pushAnswer, .reconcileAnswer,
            .fetchAnswer, .segmentsAnswer, .segmentRangeAnswer, .segmentsPushAnswer,
            .segmentRangePushAnswer, .watchAnswer, .scopedPullAnswer, .lookupAnswer, .recordsAnswer,
            .inquiryAnswer, .burialAnswer, .sweepAnswer, .failure:
            nil
        }
    }

    /// The same request with another address. What has none stays as it is.
    private func addressed(_ address: Address) -> SyncMessage {
        switch self {
        case .pull(let request): .pull(request.with(address))
        case .push(let request): .push(request.with(address))
        case .partPush(let request): .partPush(request.with(address))
        case .reconcile(let request): .reconcile(request.with(address))
        case .fetch(let request): .fetch(request.with(address))
        case .segments: .segments(SegmentsRequest(address: address))
        case .segmentRange(let request): .segmentRange(request.with(address))
        case .segmentsPush(let request): .segmentsPush(request.with(address))
        case .segmentRangePush(let request): .segmentRangePush(request.with(address))
        case .scopedPull(let request): .scopedPull(request.with(address))
        case .lookup(let request): .lookup(request.with(address))
        case .records(let request): .records(request.with(address))
        case .inquiry(let request): .inquiry(request.with(address))
        case .burial(let request): .burial(request.with(address))
        case .sweep(let request): .sweep(request.with(address))
        case .hello, .watch, .helloAnswer, .pullAnswer, .pushAnswer, .reconcileAnswer,
            .fetchAnswer, .segmentsAnswer, .segmentRangeAnswer, .segmentsPushAnswer,
            .segmentRangePushAnswer, .watchAnswer, .scopedPullAnswer, .lookupAnswer, .recordsAnswer,
            .inquiryAnswer, .burialAnswer, .sweepAnswer, .failure:
            self
        }
    }
}

/// A request about one dataset.
private protocol AddressedRequest {
    var address: Address { get set }
}

extension AddressedRequest {
    fileprivate func with(_ address: Address) -> Self {
        var request = self
        request.address = address
        return request
    }
}

extension PullRequest: AddressedRequest {}
extension PushRequest: AddressedRequest {}
extension ReconcileRequest: AddressedRequest {}
extension FetchRequest: AddressedRequest {}
extension SegmentRangeRequest: AddressedRequest {}
extension SegmentsPushRequest: AddressedRequest {}
extension SegmentRangePushRequest: AddressedRequest {}
extension ScopedPullRequest: AddressedRequest {}
extension LookupRequest: AddressedRequest {}
extension RecordsRequest: AddressedRequest {}
extension InquiryRequest: AddressedRequest {}
extension BurialRequest: AddressedRequest {}
extension SweepRequest: AddressedRequest {}

extension SyncResponder {
    /// An error as a message that the asker may read.
    ///
    /// Who sees only a part of the store is told nothing of what else there is: neither the names
    /// of datasets as the store knows them, nor paths and positions in it.
    package func encoded(_ error: SyncError) -> [UInt8] {
        guard !namespace.prefix.isEmpty else { return Self.encoded(error) }
        let known: [StoreError.Code] = [.invalidArgument, .datasetNotFound]
        if let storeError = error.storeError, !known.contains(storeError.code) {
            return Self.encoded(
                SyncError(
                    error.code, "the peer failed, and its log says why; repeat the exchange later"))
        }
        return Self.encoded(
            SyncError(
                error.code, namespace.cleaned(error.message), storeError: error.storeError))
    }
}
