import Tidemark
import TidemarkSync

/// The identities of all pools, page by page.
///
/// A search for the beginning of an id goes straight there. Any other text is looked for in ids and
/// logins, a bounded stretch for each request: a page may then have few rows, or none, and still
/// say where to go on.
///
/// They lie in the order of their ids. For another one all are looked at.
struct IdentityList: Sendable {
    enum Order: String, CaseIterable, Sendable {
        case id
        case idDescending = "-id"
        case created
        case createdDescending = "-created"
        case modified
        case modifiedDescending = "-modified"

        var isDescending: Bool { rawValue.hasPrefix("-") }
        var isByID: Bool { self == .id || self == .idDescending }

        /// What is not readable comes first, or last.
        fileprivate func rank(of id: IdentityID, _ facts: IdentityFacts?) -> RankedPage.Rank {
            let value: UInt64
            switch self {
            case .id, .idDescending: value = 0
            case .created, .createdDescending: value = facts?.created ?? 0
            case .modified, .modifiedDescending: value = facts?.modified ?? 0
            }
            return RankedPage.Rank(value, id.text)
        }
    }

    private let search: String
    private let order: Order
    private let after: IdentityID?
    /// In another order than that of ids.
    private let afterRank: RankedPage.Rank?
    private let limit: Int
    private let sortedMax: Int

    private static let searchBytesMax = 256

    /// - Parameter sortedMax: how many are looked at for another order than that of ids.
    /// - Throws: `invalidParameter`.
    init(
        _ query: ConsoleQuery, sortedMax: Int = ConsoleLimits.sortedMax
    ) throws(APIFailure) {
        self.sortedMax = sortedMax
        search = try query.text("q") ?? ""
        guard search.utf8.count <= Self.searchBytesMax else {
            throw APIFailure(
                .invalidParameter, "q may have at most \(Self.searchBytesMax) bytes")
        }
        order = try query.choice("sort", default: Order.id)
        limit = try query.limit()
        let isByID = order.isByID
        let start = try query.text("after")
        after = try start != nil && isByID ? Self.identity(after: query) : nil
        let rank = start.flatMap { RankedPage.Rank($0) }
        afterRank = isByID ? nil : rank
        guard isByID || start == nil || rank != nil else {
            throw APIFailure(
                .invalidParameter, "after is no place in that order; take it of a page's next")
        }
    }

    private static func identity(after query: ConsoleQuery) throws(APIFailure) -> IdentityID? {
        guard let id = try query.text("after").flatMap({ IdentityID($0) }) else {
            throw APIFailure(.invalidParameter, "after is no id of an identity")
        }
        return id
    }

    /// Whether the search can be nothing but the beginning of an id.
    private var isPrefix: Bool { search.contains(":") }

    private var range: KeyRange {
        let prefix = isPrefix ? KeyRange.prefix(search) : .all
        guard let after else { return prefix }
        let key = Array(after.text.utf8)
        // The key behind another one is that one and a zero byte.
        let rest = order == .id ? KeyRange(from: key + [0]) : KeyRange(upTo: key)
        return rest.intersection(prefix)
    }

    func answer(in store: Store) throws -> [UInt8] {
        order.isByID ? try byID(in: store) : try sorted(in: store)
    }

    /// Looks at ``ConsoleLimits/sortedMax`` identities at most, and remembers those of the page.
    private func sorted(in store: Store) throws -> [UInt8] {
        var page = RankedPage(
            after: afterRank, isDescending: order.isDescending, limit: limit)
        let dataset = try store.existingDataset(HubDatasets.identities)
        let cursor = try dataset?.records(in: range)
        var scanned = 0
        var isPart = false
        while let record = try cursor?.next() {
            guard scanned < sortedMax else {
                isPart = true
                break
            }
            scanned += 1
            guard let id = record.keyText.flatMap({ IdentityID($0) }) else { continue }
            let facts = record.value.flatMap { try? IdentityFacts(id, $0) }
            if matches(id, facts) { page.consider(order.rank(of: id, facts)) }
        }
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        for rank in page.ranks {
            // One that went meanwhile has no row.
            guard let id = IdentityID(rank.name),
                let value = try dataset?.get(Array(rank.name.utf8))
            else { continue }
            let facts = try? IdentityFacts(id, value)
            answer.open("{")
            Self.write(id, facts, to: &answer)
            answer.close("}")
        }
        answer.close("]")
        if page.hasMore, let last = page.ranks.last { answer.add("next", text: last.text) }
        if isPart { answer.add("lookedAt", scanned) }
        answer.close("}")
        return answer.bytes
    }

    private func byID(in store: Store) throws -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var last: String?
        var isCut = false
        if let dataset = try store.existingDataset(HubDatasets.identities) {
            let cursor = try dataset.records(
                in: range, order: order == .id ? .forward : .backward)
            var (rows, scanned) = (0, 0)
            while let record = try cursor.next() {
                guard rows < limit, scanned < ConsoleLimits.scannedMax else {
                    isCut = true
                    break
                }
                scanned += 1
                guard let id = record.keyText.flatMap({ IdentityID($0) }) else { continue }
                last = id.text
                // One that is damaged is shown as such, and hides no other.
                let facts = record.value.flatMap { try? IdentityFacts(id, $0) }
                guard matches(id, facts) else { continue }
                rows += 1
                answer.open("{")
                Self.write(id, facts, to: &answer)
                answer.close("}")
            }
        }
        answer.close("]")
        if isCut, let last { answer.add("next", text: last) }
        answer.close("}")
        return answer.bytes
    }

    private func matches(_ id: IdentityID, _ facts: IdentityFacts?) -> Bool {
        guard !search.isEmpty, !isPrefix else { return true }
        let text = search.lowercased()
        if id.text.lowercased().contains(text) { return true }
        return (facts?.logins ?? []).contains {
            $0.subject.lowercased().contains(text) || $0.provider.lowercased().contains(text)
        }
    }

    /// As members of an object that is open.
    static func write(_ id: IdentityID, _ facts: IdentityFacts?, to answer: inout JSONAnswer) {
        answer.add("identity", text: id.text)
        guard let facts else {
            answer.add("isUnreadable", true)
            return
        }
        answer.add("pool", text: facts.pool.text)
        answer.add("created", facts.created)
        answer.add("modified", facts.modified)
        answer.add("isEnabled", facts.isEnabled)
        if let into = facts.mergedInto { answer.add("mergedInto", text: into.text) }
        if facts.merging != nil { answer.add("isMerging", true) }
        answer.open("[", as: "logins")
        for login in facts.logins {
            answer.open("{")
            answer.add("provider", text: login.provider)
            answer.add("subject", text: login.subject)
            answer.close("}")
        }
        answer.close("]")
    }
}

extension Console {
    /// One identity with the names of its datasets.
    func identity(_ query: ConsoleQuery) async throws(APIFailure) -> [UInt8] {
        let id = try ConsoleNames.identity(try query.text("identity"))
        let identities = parts.identities
        return try await parts.threads.read { store in
            guard let facts = try identities.identity(id, in: store) else {
                throw APIFailure(.resourceNotFound, "there is no such identity")
            }
            var answer = JSONAnswer()
            answer.open("{")
            IdentityList.write(id, facts, to: &answer)
            let names = try store.datasetNames(
                prefix: StoreNames.prefix(of: id), limit: ConsoleLimits.rowsMax + 1)
            answer.open("[", as: "datasets")
            for name in names.prefix(ConsoleLimits.rowsMax) {
                try DatasetList.write(name, in: store, to: &answer)
            }
            answer.close("]")
            if names.count > ConsoleLimits.rowsMax { answer.add("hasMore", true) }
            answer.close("}")
            return answer.bytes
        }
    }
}
