import Tidemark
import TidemarkSync

/// How the console tells versions and records.
extension JSONAnswer {
    /// Members of an object that is open: which write it is, when and by whom.
    mutating func addMembers(of version: Version) {
        add("dot", text: ConsoleNames.text(of: version.dot))
        add("replica", text: version.dot.replica.description)
        add("counter", version.dot.counter)
        add("time", version.time.milliseconds)
        if version.time.counter > 0 { add("timeCounter", Int(version.time.counter)) }
        if !version.author.isEmpty { add("author", text: version.author) }
    }

    /// What a replica has seen, each with the highest counter.
    mutating func add(_ name: String, vector: VersionVector) {
        open("[", as: name)
        for dot in vector.dots {
            open("{")
            add("replica", text: dot.replica.description)
            add("counter", dot.counter)
            close("}")
        }
        close("]")
    }

    /// Members of an object that is open.
    ///
    /// - Parameters:
    ///   - offset: where what is shown of the value begins.
    ///   - valueBytesMax: what is shown of it.
    mutating func addMembers(of record: Record, from offset: Int = 0, valueBytesMax: Int) {
        add("id", text: RecordReference(of: record).text)
        add("key", shown: record.key, bytesMax: ConsoleLimits.shownBytes)
        addContent(of: record, from: offset, valueBytesMax: valueBytesMax)
        add("count", record.syncCount.rawValue)
        if record.isDirty { add("isDirty", true) }
    }

    /// The value, or that there is none, and the version.
    mutating func addContent(of record: Record, from offset: Int = 0, valueBytesMax: Int) {
        if let value = record.value {
            add("value", shown: value, from: offset, bytesMax: valueBytesMax)
        } else {
            add("isDeleted", true)
        }
        if let expiresAt = record.expiresAt { add("expiresAt", expiresAt) }
        addMembers(of: record.version)
    }
}

/// The records of a dataset, page by page.
struct RecordList: Sendable {
    enum Order: String, CaseIterable, Sendable {
        case key
        case keyDescending = "-key"
        /// That in which they came, as far as they are the newest of their keys.
        case change
    }

    let dataset: String
    let range: KeyRange
    let order: Order
    let includesDeleted: Bool
    let after: RecordReference?
    let limit: Int

    /// - Throws: `invalidParameter`, `resourceNotFound`.
    init(_ query: ConsoleQuery) throws(APIFailure) {
        dataset = try query.dataset()
        if let prefix = query.bytes("prefix") {
            guard prefix.count <= Limits.keyBytesMax else {
                throw APIFailure(.invalidParameter, "prefix is longer than any key")
            }
            range = .prefix(prefix)
        } else {
            range = .all
        }
        order = try query.choice("sort", default: Order.key)
        includesDeleted = try query.flag("deleted")
        after = try query.reference("after")
        limit = try query.limit()
    }

    /// Reads at most ``ConsoleLimits/scannedMax`` records and
    /// ``ConsoleLimits/pageValueBytesMax`` bytes of values.
    func answer(in store: Store) throws -> [UInt8] {
        let home = try Console.dataset(dataset, in: store)
        let cursor = try cursor(in: home)
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var (rows, scanned, valueBytes) = (0, 0, 0)
        var last: Record?
        var isCut = false
        while let record = try cursor.next() {
            guard rows < limit, scanned < ConsoleLimits.scannedMax,
                valueBytes < ConsoleLimits.pageValueBytesMax
            else {
                isCut = true
                break
            }
            scanned += 1
            last = record
            valueBytes += record.value?.count ?? 0
            guard isShown(record) else { continue }
            rows += 1
            answer.open("{")
            answer.addMembers(of: record, valueBytesMax: ConsoleLimits.shownBytes)
            answer.close("}")
        }
        answer.close("]")
        if isCut, let last { answer.add("next", text: reference(behind: last).text) }
        answer.close("}")
        return answer.bytes
    }

    private func isShown(_ record: Record) -> Bool {
        !record.isDropped && (includesDeleted || !record.isDeleted)
    }

    private func reference(behind record: Record) -> RecordReference {
        order == .change ? .position(record.syncCount.rawValue) : RecordReference(of: record)
    }

    private func cursor(in home: Dataset) throws -> RecordCursor {
        switch order {
        case .key:
            // The key behind another one is that one and a zero byte.
            let rest = KeyRange(from: try after?.key(in: home).appending(0))
            return try home.records(
                in: rest.intersection(range), includingDeleted: includesDeleted)
        case .keyDescending:
            let rest = KeyRange(upTo: try after?.key(in: home))
            return try home.records(
                in: rest.intersection(range), order: .backward, includingDeleted: includesDeleted)
        case .change:
            return try changes(of: home)
        }
    }

    private func changes(of home: Dataset) throws -> RecordCursor {
        var since = SyncCount.zero
        if let after {
            guard case .position(let count) = after else {
                throw APIFailure(.invalidParameter, "after is not of this order; begin again")
            }
            since = SyncCount(rawValue: count)
        }
        do throws(StoreError) {
            return try home.changes(since: since, in: range)
        } catch {
            guard error.code == .changesExpired else { throw error }
            throw APIFailure(
                .resourceConflict, "deletions since then are forgotten; begin at the start")
        }
    }
}

extension [UInt8] {
    fileprivate func appending(_ byte: UInt8) -> [UInt8] { self + [byte] }
}
