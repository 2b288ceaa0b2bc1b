import Tidemark
import TidemarkSync

/// The datasets of the store but for the hub's own, page by page: in the order of their names, in
/// which they lie, or in another one, for which all are looked at.
struct DatasetList: Sendable {
    enum Order: String, CaseIterable, Sendable {
        case name
        case nameDescending = "-name"
        case count
        case countDescending = "-count"
        case created
        case createdDescending = "-created"
        case replicas
        case replicasDescending = "-replicas"

        var isDescending: Bool { rawValue.hasPrefix("-") }

        fileprivate func rank(of summary: DatasetSummary) -> RankedPage.Rank {
            let value: UInt64
            switch self {
            case .name, .nameDescending: value = 0
            case .count, .countDescending: value = summary.syncCount.rawValue
            case .created, .createdDescending: value = summary.creationTime.milliseconds
            case .replicas, .replicasDescending:
                value = UInt64(DatasetList.replicas(among: summary.peers).count)
            }
            return RankedPage.Rank(value, summary.name)
        }
    }

    private let prefix: String
    /// A part of the name; empty for any.
    private let search: String
    private let order: Order
    /// A name, or a rank in another order than that of the names.
    private let after: String?
    private let limit: Int
    private let sortedMax: Int

    /// - Parameter sortedMax: how many are looked at for another order than that of the names.
    /// - Throws: `invalidParameter`.
    init(
        _ query: ConsoleQuery, sortedMax: Int = ConsoleLimits.sortedMax
    ) throws(APIFailure) {
        prefix = try query.text("prefix") ?? ""
        search = try query.text("q") ?? ""
        order = try query.choice("sort", default: Order.name)
        after = try query.text("after")
        limit = try query.limit()
        self.sortedMax = sortedMax
        var texts = [("prefix", prefix), ("q", search)]
        if order == .name { texts.append(("after", after ?? "")) }
        for (name, text) in texts where !ConsoleNames.isDatasetText(text) {
            throw APIFailure(.invalidParameter, "\(name) can be a part of no name of a dataset")
        }
        if order != .name, let after, RankedPage.Rank(after) == nil {
            throw APIFailure(
                .invalidParameter, "after is no place in that order; take it of a page's next")
        }
    }

    func answer(in store: Store) throws -> [UInt8] {
        order == .name ? try byName(in: store) : try sorted(in: store)
    }

    /// Looks at ``ConsoleLimits/sortedMax`` datasets at most, and remembers those of the page.
    private func sorted(in store: Store) throws -> [UInt8] {
        var page = RankedPage(
            after: after.flatMap { RankedPage.Rank($0) }, isDescending: order.isDescending,
            limit: limit)
        var scanned = 0
        var isPart = false
        try store.forEachDatasetSummary(prefix: prefix) { summary in
            guard !ConsoleNames.isOwn(summary.name) else { return true }
            guard scanned < sortedMax else {
                isPart = true
                return false
            }
            scanned += 1
            if matches(summary.name) { page.consider(order.rank(of: summary)) }
            return true
        }
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        for rank in page.ranks { try Self.write(rank.name, in: store, to: &answer) }
        answer.close("]")
        if page.hasMore, let last = page.ranks.last { answer.add("next", text: last.text) }
        if isPart { answer.add("lookedAt", scanned) }
        answer.close("}")
        return answer.bytes
    }

    /// Looks at ``ConsoleLimits/scannedMax`` names at most.
    private func byName(in store: Store) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var (rows, scanned) = (0, 0)
        var last = after
        var isCut = false
        while !isCut {
            let names = try store.datasetNames(
                prefix: prefix, after: last, limit: ConsoleLimits.namesAtOnce)
            for name in names {
                if ConsoleNames.isOwn(name) {
                    // Those lie together: what comes next is behind all of them.
                    last = StoreNames.ownPrefix + "~"
                    break
                }
                guard rows < limit, scanned < ConsoleLimits.scannedMax else {
                    isCut = true
                    break
                }
                scanned += 1
                last = name
                guard matches(name) else { continue }
                rows += try Self.write(name, in: store, to: &answer) ? 1 : 0
            }
            if names.isEmpty { break }
        }
        answer.close("]")
        if isCut, let last { answer.add("next", text: last) }
        answer.close("}")
        return answer.bytes
    }

    private func matches(_ name: String) -> Bool {
        search.isEmpty || name.lowercased().contains(search.lowercased())
    }

    /// Without the API of Cognito, which is a peer of every dataset of an identity.
    fileprivate static func replicas(among peers: [ReplicaID]) -> [ReplicaID] {
        peers.filter { $0 != CognitoPeer.replica }
    }

    /// A row; nothing if the dataset was deleted meanwhile. Costs no walk over records.
    @discardableResult
    static func write(
        _ name: String, in store: Store, to answer: inout JSONAnswer
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            guard let dataset = try store.existingDataset(name) else { return false }
            let (count, created) = (try dataset.syncCount, try dataset.creationTime)
            let peers = replicas(among: try dataset.peerIDs())
            answer.open("{")
            answer.add("dataset", text: name)
            if let parsed = StoreNames.parsed(name) {
                answer.add("identity", text: parsed.identity.text)
                answer.add("name", text: parsed.name.text)
            }
            answer.add("count", count.rawValue)
            answer.add("created", created.milliseconds)
            answer.add("replicas", peers.count)
            answer.close("}")
            return true
        } catch {
            guard error.code == .datasetNotFound else { throw error }
            return false
        }
    }
}

extension Console {
    /// One dataset: what it holds, counted up to a bound, what it has seen, and its peers.
    func dataset(_ query: ConsoleQuery) async throws(APIFailure) -> [UInt8] {
        let name = try query.dataset()
        return try await parts.threads.read { store in
            let dataset = try Self.dataset(name, in: store)
            var answer = JSONAnswer()
            answer.open("{")
            answer.add("dataset", text: name)
            if let parsed = StoreNames.parsed(name) {
                answer.add("identity", text: parsed.identity.text)
                answer.add("name", text: parsed.name.text)
                answer.add("apiCount", try DatasetCount.current(of: name, in: store))
            }
            let knowledge = try dataset.knowledge()
            answer.add("count", knowledge.syncCount.rawValue)
            answer.add("created", try dataset.creationTime.milliseconds)
            answer.add("vector", vector: knowledge.vector)
            let (records, tombstones, isAll) = try Self.counted(dataset)
            answer.add("records", records)
            answer.add("tombstones", tombstones)
            answer.add("isCountedWhole", isAll)
            let waiting = try dataset.pendingConflicts(
                limit: ConsoleLimits.conflictsOfDatasetMax)
            answer.add("conflicts", waiting.count)
            answer.open("[", as: "peers")
            try Self.writePeers(of: dataset, store, to: &answer)
            answer.close("]")
            answer.close("}")
            return answer.bytes
        }
    }

    /// Records and tombstones, until they are ``ConsoleLimits/countedMax``.
    private static func counted(
        _ dataset: Dataset
    ) throws(StoreError) -> (records: Int, tombstones: Int, isAll: Bool) {
        let cursor = try dataset.records(
            limit: ConsoleLimits.countedMax + 1, includingDeleted: true)
        var (records, tombstones) = (0, 0)
        while let isLive = try cursor.withNext({ _, value in value != nil }) {
            guard records + tombstones < ConsoleLimits.countedMax else {
                return (records, tombstones, false)
            }
            records += isLive ? 1 : 0
            tombstones += isLive ? 0 : 1
        }
        return (records, tombstones, true)
    }
}
