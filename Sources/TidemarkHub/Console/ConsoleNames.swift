import Tidemark

/// What requests of the console name, checked before the store sees it.
enum ConsoleNames {
    /// A dataset that the console shows: any but the hub's own, in which tokens of devices are.
    ///
    /// - Throws: `invalidParameter` for a name that no dataset can have, `resourceNotFound` for one
    ///   of the hub's own.
    static func dataset(_ text: String?) throws(APIFailure) -> String {
        guard let text, DatasetName.isValid(text) else {
            throw APIFailure(.invalidParameter, "dataset must have \(DatasetName.rule)")
        }
        guard !isOwn(text) else {
            throw APIFailure(
                .resourceNotFound, "the hub's own datasets are shown by what they hold")
        }
        return text
    }

    static func isOwn(_ name: String) -> Bool {
        name.hasPrefix(StoreNames.ownPrefix)
    }

    /// The beginning of a name, or a part of one.
    static func isDatasetText(_ text: String) -> Bool { DatasetName.isPart(text) }

    /// - Throws: `invalidParameter`.
    static func identity(_ text: String?) throws(APIFailure) -> IdentityID {
        guard let id = text.flatMap({ IdentityID($0) }) else {
            throw APIFailure(.invalidParameter, "identity is no id of an identity")
        }
        return id
    }

    /// The write that a page was made of, so that nothing is overwritten that nobody has seen: 32
    /// hexadecimal digits, a colon and a number.
    ///
    /// - Throws: `invalidParameter`.
    static func dot(_ text: String) throws(APIFailure) -> Dot {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let replica = ReplicaID(String(parts[0])),
            let counter = UInt64(parts[1]), counter > 0
        else {
            throw APIFailure(
                .invalidParameter, "at names no write; give replica and counter, as in a record")
        }
        return Dot(replica: replica, counter: counter)
    }

    static func text(of dot: Dot) -> String { "\(dot.replica.description):\(dot.counter)" }
}

/// Names a record in a link, and the place behind which a list goes on.
///
/// `k` and the key in base64, or `c` and the sync count of the record's present version, for keys
/// that are too long for a link. That one is good until the record changes.
enum RecordReference: Hashable, Sendable {
    case key([UInt8])
    case position(UInt64)

    init(of record: Record) {
        self =
            record.key.count <= ConsoleLimits.keyInLinkBytesMax
            ? .key(record.key) : .position(record.syncCount.rawValue)
    }

    /// - Throws: `invalidParameter`.
    init(_ text: String, called name: String) throws(APIFailure) {
        let rest = text.dropFirst()
        if text.hasPrefix("k"), let key = Base64.decodedFromURL(rest),
            (1...Limits.keyBytesMax).contains(key.count)
        {
            self = .key(key)
        } else if text.hasPrefix("c"), let count = UInt64(rest), count > 0, count < 1 << 56 {
            self = .position(count)
        } else {
            throw APIFailure(.invalidParameter, "\(name) names no record; take one of a list")
        }
    }

    var text: String {
        switch self {
        case .key(let key): "k" + Base64.encodedForURL(key)
        case .position(let count): "c\(count)"
        }
    }

    /// The record or tombstone that it names.
    ///
    /// - Throws: `resourceNotFound` as an `APIFailure`, and what the store throws.
    func record(in dataset: Dataset) throws -> Record {
        let found: Record?
        switch self {
        case .key(let key):
            found = try dataset.recordOrTombstone(of: key)
        case .position(let count):
            let next = try dataset.changes(since: SyncCount(rawValue: count - 1)).next()
            found = next.flatMap { $0.syncCount.rawValue == count && !$0.isDropped ? $0 : nil }
        }
        guard let found else {
            throw APIFailure(
                .resourceNotFound, "there is no such record any more; look at the list again")
        }
        return found
    }

    /// The key, whether there is a record or not.
    ///
    /// - Throws: as ``record(in:)`` if it is named by its place.
    func key(in dataset: Dataset) throws -> [UInt8] {
        if case .key(let key) = self { return key }
        return try record(in: dataset).key
    }
}
