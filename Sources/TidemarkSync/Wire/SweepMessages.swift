import Tidemark

/// Asks for changes in the order of their keys: what is read, compared and written in that order
/// costs a fraction of what it costs in the order of change.
struct SweepRequest: Hashable, Sendable {
    var address: Address
    var asker: AskerClaims
    /// In the responder's order of change: what changed up to here is known to the asker.
    var since: SyncCount
    /// The first key to be told of; empty for the first there is.
    var start: [UInt8]
    var recordsMax: Int
    var bytesMax: Int
}

struct SweepAnswer: Hashable, Sendable {
    /// It moves no position and is never the last one.
    var page: RecordPage
    /// The first key that is not told of; nil if nothing is left.
    var next: [UInt8]?
}

extension SweepRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        asker.write(to: &writer)
        writer.plain {
            $0.putVarint(since.rawValue)
            $0.putBytes(start)
            $0.putCount(recordsMax)
            $0.putCount(bytesMax)
        }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        asker = try AskerClaims(from: &reader)
        since = try reader.takeSyncCount()
        start = try reader.plain { reader throws(SyncError) in
            try reader.takeBytes("key", max: Limits.keyBytesMax)
        }
        recordsMax = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
        bytesMax = try reader.takeNumber(max: SyncLimits.pageBytesMax)
    }
}

extension SweepAnswer {
    func write(to writer: inout VersionWriter) {
        writer.putPage(page)
        writer.plain { $0.putBytes(next ?? []) }
    }

    init(from reader: inout VersionReader) throws(SyncError) {
        page = try reader.takePage()
        let key = try reader.plain { reader throws(SyncError) in
            try reader.takeBytes("key", max: Limits.keyBytesMax)
        }
        next = key.isEmpty ? nil : key
    }
}
