import Tidemark
import TidemarkSync

/// The datasets of the store but for the hub's own, page by page in the order of their names.
struct DatasetList: Sendable {
    private let prefix: String
    /// A part of the name; empty for any.
    private let search: String
    private let after: String?
    private let limit: Int

    /// - Throws: `invalidParameter`.
    init(_ query: ConsoleQuery) throws(APIFailure) {
        prefix = try query.text("prefix") ?? ""
        search = try query.text("q") ?? ""
        after = try query.text("after")
        limit = try query.limit()
        for (name, text) in [("prefix", prefix), ("q", search), ("after", after ?? "")]
        where !ConsoleNames.isDatasetText(text) {
            throw APIFailure(.invalidParameter, "\(name) can be a part of no name of a dataset")
        }
    }

    /// Looks at ``ConsoleLimits/scannedMax`` names at most.
    func answer(in store: Store) throws -> [UInt8] {
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

    /// A row; nothing if the dataset was deleted meanwhile. Costs no walk over records.
    @discardableResult
    static func write(
        _ name: String, in store: Store, to answer: inout JSONAnswer
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            guard let dataset = try store.existingDataset(name) else { return false }
            let (count, created) = (try dataset.syncCount, try dataset.creationTime)
            let peers = try dataset.peerIDs().filter { $0 != CognitoPeer.replica }
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
