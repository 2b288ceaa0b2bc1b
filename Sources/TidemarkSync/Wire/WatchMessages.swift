import Tidemark

/// Asks to be told when any of these datasets has changed.
struct WatchRequest: Hashable, Sendable {
    struct Item: Hashable, Sendable {
        var dataset: String
        /// In the responder's order of change: what the asker knows of already.
        var since: SyncCount
    }

    var from: ReplicaID
    /// Whose counts these are. If the responder has another id, they mean nothing.
    var to: ReplicaID
    /// How long the answer may wait for a change. A responder, or what stands between, that cannot
    /// wait answers at once.
    var waitMilliseconds: Int
    var items: [Item]
}

struct WatchAnswer: Hashable, Sendable {
    /// Whether the responder waited for a change; if not, to ask again at once would be to ask
    /// for ever.
    var hasWaited: Bool
    /// Datasets that are ahead, with their counts; none if nothing changed.
    var news: [WatchRequest.Item]
}

extension WatchRequest {
    func write(to writer: inout VersionWriter) {
        writer.putReplica(from)
        writer.putReplica(to)
        writer.plain {
            $0.putCount(waitMilliseconds)
            $0.putCount(items.count)
            for item in items { item.write(to: &$0) }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        from = try reader.takeReplica()
        to = try reader.takeReplica()
        waitMilliseconds = try reader.takeNumber(max: SyncLimits.watchMillisecondsMax)
        items = try Item.takeAll(from: &reader)
    }
}

extension WatchAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putFlag(hasWaited)
            $0.putCount(news.count)
            for item in news { item.write(to: &$0) }
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        hasWaited = try reader.takeFlag()
        news = try WatchRequest.Item.takeAll(from: &reader)
    }
}

extension WatchRequest.Item {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.putText(dataset)
        writer.putVarint(since.rawValue)
    }

    fileprivate static func takeAll(
        from reader: inout VersionReader
    ) throws(SyncError) -> [WatchRequest.Item] {
        let count = try reader.takeCount(
            of: "datasets", bytesEach: 2, max: SyncLimits.watchedDatasetsMax)
        var items: [WatchRequest.Item] = []
        for _ in 0..<count {
            items.append(
                WatchRequest.Item(
                    dataset: try reader.takeName(), since: try reader.takeSyncCount()))
        }
        return items
    }
}
