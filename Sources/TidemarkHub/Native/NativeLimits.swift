import Tidemark
import TidemarkSync

/// What a replica may store that has the token of an identity: no more than the same identity may
/// through the Cognito API, and a bound for whatever else a replica can make grow.
struct NativeLimits: Sendable {
    /// Replicas that exchange one dataset. A device that is set up anew is another one.
    private static let peersMax = 256
    /// Replicas that have ever written to one dataset.
    private static let writersMax = 512
    /// Bytes of a request, below which a first exchange would take many.
    private static let requestBytesMin = 8 << 20

    private let limits: HubLimits

    init(_ limits: HubLimits) {
        self.limits = limits
    }

    /// Records are handed out one by one: a segment lies among those of others, and to make one of
    /// the log for one identity would make one for all.
    var responder: SyncResponder.Limits {
        SyncResponder.Limits(
            requestBytesMax: requestBytesMax, segmentBytesMin: .max, quota: quota)
    }

    /// Of a message, packed or not: twice what a dataset may hold, so that a page of any records is
    /// among them with its versions.
    var requestBytesMax: Int {
        let wanted = limits.datasetBytesMax.multipliedReportingOverflow(by: 2)
        return min(
            SyncLimits.messageBytesMax,
            max(Self.requestBytesMin, wanted.overflow ? .max : wanted.partialValue))
    }

    private var quota: SyncQuota {
        var quota = SyncQuota()
        quota.datasetsMax = limits.datasetsPerIdentityMax
        quota.datasetNamesMax = limits.datasetNamesPerIdentityMax
        quota.recordsMax = limits.recordsPerDatasetMax
        quota.bytesMax = limits.datasetBytesMax
        quota.tombstonesMax = Self.product(
            limits.recordsPerDatasetMax, limits.tombstonesPerRecordMax)
        // All that a device with a clock ahead of the hub's has written.
        quota.heldMax = limits.recordsPerDatasetMax
        quota.peersMax = Self.peersMax
        quota.writersMax = Self.writersMax
        return quota
    }

    /// The product, or the greatest number if it is none.
    private static func product(_ one: Int, _ other: Int) -> Int {
        let (product, overflow) = one.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }

    /// Refuses a record that the Cognito API would not take, so that clients of it can change what
    /// a replica has written.
    func validate(_ record: Record) throws {
        guard Self.length(of: record.key, upTo: limits.recordKeyMax) <= limits.recordKeyMax else {
            throw TooLong(what: "key", max: limits.recordKeyMax)
        }
        guard let value = record.value else { return }
        guard Self.length(of: value, upTo: limits.recordValueMax) <= limits.recordValueMax else {
            throw TooLong(what: "value", max: limits.recordValueMax)
        }
    }

    /// Unicode scalars, or bytes if it is no text.
    private static func length(of bytes: [UInt8], upTo max: Int) -> Int {
        // No text has more scalars than bytes.
        guard bytes.count > max else { return bytes.count }
        return String(validating: bytes, as: UTF8.self)?.unicodeScalars.count ?? bytes.count
    }

    /// Its words go to the replica.
    private struct TooLong: Error, CustomStringConvertible {
        let what: String
        let max: Int

        var description: String { "its \(what) has more than \(max) characters" }
    }
}
