import Tidemark
import TidemarkSync

// ListRecords. What is listed is the dataset at one count, which every page tells: whatever is
// written meanwhile has a greater one and comes with the next listing, so that a client that takes
// the count for its own has seen all up to it.

extension RecordOperations {
    /// What a call asks for.
    private struct ListRequest: Sendable {
        let identity: IdentityID
        let storeName: String
        /// The API's count that the client has; 0 for none.
        let since: UInt64
        let page: RecordPageToken?
        let recordsMax: Int
        /// Whether the client said how many records it takes, as those do that ask for pages.
        let isPaging: Bool
    }

    /// What a page has, before it is told.
    private struct Page {
        var records: [Record] = []
        /// Whether there are more.
        var isCut = false
        /// Whether the client is to forget what it has.
        var isDeleted = false
        /// Whether all of the dataset was walked through.
        var isWhole = false
    }

    /// What a call is answered.
    private struct Listed: Sendable {
        let answer: [UInt8]
        /// Whether the dataset does not know yet that devices are to hear of its deletions.
        var needsPeer = false
        /// What is told, unless it is known to be durable.
        var unsure: DatasetFacts?

        init(_ answer: [UInt8], of facts: DatasetFacts? = nil, needsPeer: Bool = false) {
            self.answer = answer
            self.needsPeer = needsPeer
            unsure = facts.flatMap { $0.isDurable ? nil : $0 }
        }
    }

    func list(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        let (pool, identity) = (try call.pool(), try call.identity())
        let storeName = StoreNames.dataset(try call.datasetName(), of: identity)
        var page: RecordPageToken?
        if let token = call.query.nextToken {
            page = try RecordPageToken(token, of: storeName, secrets)
        } else {
            books.sessions.note(pool)
        }
        let pageMax = max(1, limits.pageRecordsMax)
        let request = ListRequest(
            identity: identity, storeName: storeName,
            since: page?.since ?? call.query.lastSyncCount ?? 0, page: page,
            // A client that may never ask for the next page gets a call whole at least: there is no
            // count for a part of it.
            recordsMax: call.query.maxResults.map { min($0, pageMax) }
                ?? max(pageMax, limits.patchesMax),
            isPaging: call.query.maxResults != nil)
        let outcome = try await threads.read { store in try listed(request, in: store) }
        // Once for a dataset that replicas have made. Where it cannot be written, as on a full
        // disk, the listing is told all the same, and the next one tries again.
        if outcome.needsPeer { try? await registerPeer(of: storeName) }
        if let facts = outcome.unsure { try await awaitDurability(of: facts, storeName) }
        return outcome.answer
    }

    /// Others may see a write before it is durable. But a client takes the count that it is told
    /// for its own: if a power cut took the write back, the next one would have the same count, and
    /// this client would never hear of it. So it is told when the write is.
    ///
    /// - Throws: `tooManyRequests` if too many wait for the disk.
    private func awaitDurability(
        of facts: DatasetFacts, _ storeName: String
    ) async throws(APIFailure) {
        let books = books
        try await threads.write { store -> Void in
            // What was opened anew since has made durable all that it found.
            guard store.incarnation == facts.incarnation else { return }
            do throws(StoreError) {
                try store.acknowledgePresent()
            } catch {
                // On a full disk nothing becomes durable, and reads are answered all the same.
                return
            }
            var durable = facts
            durable.isDurable = true
            books.cache.keep(durable, of: storeName)
        }
    }

    private func registerPeer(of storeName: String) async throws(APIFailure) {
        try await threads.write { store in
            guard let dataset = try store.existingDataset(storeName) else { return }
            try CognitoPeer.register(in: dataset)
        }
    }

    private func listed(_ request: ListRequest, in store: Store) throws -> Listed {
        guard let dataset = try store.existingDataset(request.storeName) else {
            return try answerOfNone(request, in: store)
        }
        let knowledge = try dataset.knowledge()
        var facts = try books.facts(of: request.storeName, at: knowledge, in: store)
        do {
            let page = try page(of: dataset, facts, request)
            let answer = try answer(page, of: dataset, &facts, request)
            if !facts.hasPeer {
                facts.hasPeer = try CognitoPeer.isRegistered(in: dataset)
                books.cache.keep(facts, of: request.storeName)
            }
            return Listed(answer, of: facts, needsPeer: !facts.hasPeer)
        } catch let error as StoreError where error.code == .datasetNotFound {
            // Deleted meanwhile.
            return try answerOfNone(request, in: store)
        }
    }

    // MARK: - Reading

    private func page(
        of dataset: Dataset, _ facts: DatasetFacts, _ request: ListRequest
    ) throws(StoreError) -> Page {
        let through = request.page?.through ?? facts.position
        if let token = request.page {
            return try laterPage(of: dataset, facts, token, through: through, request)
        }
        // A count that the dataset has not reached is of a store that was put back from a copy:
        // the client is told everything, since nobody knows what it has of it.
        guard request.since > 0, request.since <= facts.count else {
            return try firstPage(of: dataset, through: through, request)
        }
        let since = facts.map.position(atCount: request.since)
        guard since < through else { return Page() }
        do throws(StoreError) {
            return try page(of: dataset, since: since, through: through, request)
        } catch {
            guard error.code == .changesExpired else { throw error }
            // It was deleted since, or so many of its deletions are forgotten that the client must
            // begin afresh, which is the same to it.
            var page = try firstPage(of: dataset, through: through, request)
            page.isDeleted = true
            return page
        }
    }

    /// Everything, as far as it goes onto one page: mostly all there is, in the order of the keys.
    private func firstPage(
        of dataset: Dataset, through: UInt64, _ request: ListRequest
    ) throws(StoreError) -> Page {
        let limit = request.recordsMax + 1
        let records = try dataset.records(limit: limit, includingDeleted: true).collect()
        guard records.count < limit else {
            return try page(of: dataset, since: 0, through: through, request)
        }
        var page = Page()
        page.isWhole = true
        page.records = records.filter { !$0.isDropped && $0.syncCount.rawValue <= through }
        return page
    }

    private func laterPage(
        of dataset: Dataset, _ facts: DatasetFacts, _ token: RecordPageToken, through: UInt64,
        _ request: ListRequest
    ) throws(StoreError) -> Page {
        do throws(StoreError) {
            var page = try page(of: dataset, since: token.last, through: through, request)
            page.isDeleted = token.isDeleted
            return page
        } catch {
            guard error.code == .changesExpired else { throw error }
            // Whoever was told everything from the start lacks no deletion. Whoever was not may.
            let wasWhole = token.isDeleted || token.since == 0
            let from = wasWhole ? token.last : 0
            var page = try page(
                of: dataset, since: 0, from: from, through: through, request)
            page.isDeleted = token.since > 0
            return page
        }
    }

    /// What changed after one place up to another one, in the order of change.
    ///
    /// - Parameters:
    ///   - since: asked of the store, which throws `changesExpired` for one that is too far back.
    ///   - from: what came up to there is passed over.
    private func page(
        of dataset: Dataset, since: UInt64, from: UInt64 = 0, through: UInt64,
        _ request: ListRequest
    ) throws(StoreError) -> Page {
        let cursor = try dataset.changes(since: SyncCount(rawValue: since))
        var page = Page()
        while let record = try cursor.next(), record.syncCount.rawValue <= through {
            guard !record.isDropped, record.syncCount.rawValue > from else { continue }
            guard page.records.count < request.recordsMax else {
                page.isCut = true
                break
            }
            page.records.append(record)
        }
        return page
    }

    // MARK: - Telling

    private func answer(
        _ page: Page, of dataset: Dataset, _ facts: inout DatasetFacts, _ request: ListRequest
    ) throws -> [UInt8] {
        let through = request.page?.through ?? facts.position
        var answer = JSONAnswer()
        answer.open("{")
        try tell(page, of: dataset, facts, request, to: &answer)
        let listed = request.page?.count ?? facts.count
        var count = listed
        if page.isCut, let last = page.records.last?.syncCount.rawValue {
            let token = RecordPageToken(
                through: through, count: listed, last: last, since: request.since,
                isDeleted: page.isDeleted)
            answer.add("NextToken", text: token.sealed(of: request.storeName, secrets))
            if !request.isPaging { count = countReached(last, count, facts.map, request) }
        }
        answer.add("DatasetSyncCount", count)
        if let last = try books.lastChange(of: dataset, &facts, request.identity) {
            answer.add("LastModifiedBy", text: last.author)
        }
        try tellMerged(into: dataset, request, to: &answer)
        answer.add("DatasetExists", true)
        answer.add("DatasetDeletedAfterRequestedSyncCount", page.isDeleted)
        tellSession(at: through, request, to: &answer)
        answer.close("}")
        return answer.bytes
    }

    private func tell(
        _ page: Page, of dataset: Dataset, _ facts: DatasetFacts, _ request: ListRequest,
        to answer: inout JSONAnswer
    ) throws {
        answer.open("[", as: "Records")
        var untellable = 0
        if !page.records.isEmpty {
            let sheet = try Sheet(of: request.storeName, in: dataset.store)
            // One walk over the sheet costs less than so many searches in it.
            let isWalk = page.isWhole ? page.records.count > 8 : page.records.count > 64
            let entries = try isWalk ? sheet?.entries() ?? [:] : [:]
            let teller = RecordTeller(request.identity, facts.map, dataset.store)
            for record in page.records {
                let entry: SheetEntry?
                if isWalk {
                    let found = entries[record.key]
                    entry = found?.position == record.syncCount.rawValue ? found : nil
                } else {
                    entry = try sheet?.entry(of: record)
                }
                if !teller.write(record, entry, to: &answer) { untellable += 1 }
            }
        }
        answer.close("]")
        answer.add("Count", page.records.count - untellable)
        RecordTeller.noteUntellable(untellable)
    }

    /// A client that does not ask for pages may never ask for the next one, but takes the count for
    /// its own all the same. So it is told just the count up to which it has all, unless it would
    /// get no further by that.
    private func countReached(
        _ last: UInt64, _ count: UInt64, _ map: CountMap, _ request: ListRequest
    ) -> UInt64 {
        let reached = map.count(at: last)
        // The page may end within a call, whose count is not reached then.
        let isWhole = map.position(atCount: reached) == last
        let whole = isWhole ? reached : max(reached, 1) - 1
        return whole > request.since ? min(whole, count) : count
    }

    private func tellMerged(
        into dataset: Dataset, _ request: ListRequest, to answer: inout JSONAnswer
    ) throws(StoreError) {
        answer.open("[", as: "MergedDatasetNames")
        for merged in try dataset.store.mergedDatasets(into: request.storeName) {
            guard let name = StoreNames.apiName(of: merged.name, request.identity) else {
                continue
            }
            answer.add(text: name.text)
        }
        answer.close("]")
    }

    private func tellSession(
        at position: UInt64, _ request: ListRequest, to answer: inout JSONAnswer
    ) {
        let token = SyncSession.token(of: request.storeName, at: position, clock, secrets)
        answer.add("SyncSessionToken", text: token)
    }

    /// Of a dataset that is not there: no failure, since that is how clients find out.
    private func answerOfNone(_ request: ListRequest, in store: Store) throws -> Listed {
        let knowledge = try store.datasetForSync(request.storeName, creating: false)?.knowledge()
        let position = knowledge?.syncCount.rawValue ?? 0
        let facts = try knowledge.map { knowledge in
            try books.facts(of: request.storeName, at: knowledge, in: store)
        }
        let count = facts?.count ?? 0
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "Records")
        answer.close("]")
        answer.add("Count", 0)
        answer.add("DatasetSyncCount", count)
        answer.open("[", as: "MergedDatasetNames")
        answer.close("]")
        answer.add("DatasetExists", false)
        // A client that has heard of the deletion is not told of it again.
        answer.add(
            "DatasetDeletedAfterRequestedSyncCount", request.since > 0 && count > request.since)
        tellSession(at: position, request, to: &answer)
        answer.close("}")
        return Listed(answer.bytes, of: facts)
    }
}
