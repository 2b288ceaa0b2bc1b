import Tidemark

/// Asks for the newest versions of certain keys, wherever they stand in the order of change: of
/// records that were left out before, and that no page would bring again.
struct RecordsRequest: Hashable, Sendable {
    var address: Address
    /// Each once, at least one.
    var keys: [[UInt8]]
    var bytesMax: Int
    /// The responder's disputed ids, as the asker knows of them.
    var disputed: [ReplicaID] = []
}

struct RecordsAnswer: Hashable, Sendable {
    /// So many of the keys, from the first on, are answered for. Of one that is not in the page
    /// nothing is there.
    var answered: Int
    /// Its `through` means nothing.
    var page: RecordPage
}

extension RecordsRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.plain {
            $0.putCount(keys.count)
            for key in keys { $0.putBytes(key) }
            $0.putCount(bytesMax)
        }
        writer.putReplicas(disputed)
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        keys = []
        let count = try reader.takeCount(of: "keys", max: SyncLimits.fetchedKeysMax)
        for _ in 0..<count {
            keys.append(
                try reader.plain { reader throws(SyncError) in
                    try reader.takeBytes("key", max: Limits.keyBytesMax)
                })
        }
        guard Set(keys).count == keys.count, !keys.isEmpty else {
            throw .badMessage("keys are asked for twice, or none is")
        }
        bytesMax = try reader.takeNumber(max: SyncLimits.pageBytesMax)
        disputed = try reader.takeReplicas()
    }
}

extension RecordsAnswer {
    func write(to writer: inout VersionWriter) {
        writer.putPage(page)
        writer.plain { $0.putCount(answered) }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        page = try reader.takePage()
        answered = try reader.takeNumber(max: SyncLimits.fetchedKeysMax)
    }
}
