// A bundle is a file of frames as they travel between two replicas (`MessageFrame`):
//
//   header ─▶ page ─▶ ... ─▶ page ─▶ end
//
// A page is the very message by which a responder answers a pull, so a bundle is read by what
// reads an exchange. Header and end are of kinds that no message has: nobody takes a bundle for an
// answer, nor an answer for a bundle. The end counts what came before it and links the checksums
// of all frames, so that none can be missing, or stand in another place, without being noticed.

import Tidemark

/// What stands in front of the pages.
struct BundleHeader: Hashable, Sendable {
    static let kind: UInt8 = 0x40
    static let formatVersion: UInt16 = 1

    var sender: ReplicaID
    var dataset: String
    /// Whom it was made for; nil: whoever it reaches.
    var receiver: ReplicaID?
    /// In the sender's order of change: the pages follow on this.
    var since: SyncCount
    /// In the receiver's order of change: the sender has everything up to there. Zero if it was
    /// made for nobody in particular.
    var acknowledged: SyncCount
    /// What the pages leave out, because the receiver is known to have it.
    var required: VersionVector
    /// The tokens that the sender drew last under its id, oldest first.
    var drawn: [Baton]
}

/// What stands behind them.
struct BundleEnd: Hashable, Sendable {
    static let kind: UInt8 = 0x41

    var pageCount: UInt64
    var recordCount: UInt64
    /// Of all frames before: see ``BundleChain``.
    var chain: UInt64
}

/// A number that depends on all frames of a bundle and on their order.
struct BundleChain: Hashable, Sendable {
    private(set) var value: UInt64 = 0

    /// Takes in the frame that comes next: XXH3-64 of the value so far and the frame's checksum.
    mutating func add(_ frame: [UInt8]) {
        var link = ByteWriter()
        link.putFixed(value)
        link.append(frame.suffix(MessageFrame.checksumBytes))
        value = MessageFrame.checksum(link.bytes[...])
    }
}

extension BundleHeader {
    func encoded() throws(SyncError) -> [UInt8] {
        var writer = VersionWriter()
        writer.plain { $0.putFixed(Self.formatVersion) }
        writer.putReplica(sender)
        writer.plain {
            $0.putText(dataset)
            $0.putFlag(receiver != nil)
        }
        if let receiver { writer.putReplica(receiver) }
        writer.plain {
            $0.putVarint(since.rawValue)
            $0.putVarint(acknowledged.rawValue)
        }
        writer.putVector(required)
        writer.plain {
            $0.putCount(drawn.count)
            for baton in drawn {
                $0.putVarint(baton.number)
                $0.putFixed(baton.random)
            }
        }
        return try MessageFrame(
            version: SyncLimits.protocolVersions.upperBound, kind: Self.kind, body: writer.bytes
        ).encoded()
    }

    init(_ frame: MessageFrame) throws(SyncError) {
        guard frame.kind == Self.kind else {
            throw .badMessage("a file that begins with a frame of kind \(frame.kind) is no bundle")
        }
        var reader = VersionReader(frame.body)
        let version = try reader.plain { reader throws(SyncError) in
            try reader.takeFixed(UInt16.self)
        }
        guard version == Self.formatVersion else {
            throw SyncError(
                .protocolMismatch,
                "the bundle has format \(version), and this version reads \(Self.formatVersion); "
                    + "update the older side")
        }
        sender = try reader.takeReplica()
        dataset = try reader.takeName()
        receiver = try reader.takeFlag() ? try reader.takeReplica() : nil
        since = try reader.takeSyncCount()
        acknowledged = try reader.takeSyncCount()
        required = try reader.takeVector()
        let count = try reader.takeCount(
            of: "batons", bytesEach: 9, max: BatonRecord.drawnMax)
        drawn = []
        for _ in 0..<count {
            let number = try reader.plain { reader throws(SyncError) in try reader.takeVarint() }
            let random = try reader.plain { reader throws(SyncError) in
                try reader.takeFixed(UInt64.self)
            }
            drawn.append(Baton(replica: sender, number: number, random: random))
        }
        try reader.finish()
    }
}

extension BundleEnd {
    func encoded() throws(SyncError) -> [UInt8] {
        var writer = ByteWriter()
        writer.putVarint(pageCount)
        writer.putVarint(recordCount)
        writer.putFixed(chain)
        return try MessageFrame(
            version: SyncLimits.protocolVersions.upperBound, kind: Self.kind, body: writer.bytes
        ).encoded()
    }

    init(_ frame: MessageFrame) throws(SyncError) {
        guard frame.kind == Self.kind else {
            throw .badMessage("a frame of kind \(frame.kind) stands where the bundle ends")
        }
        var reader = ByteReader(frame.body)
        pageCount = try reader.takeVarint()
        recordCount = try reader.takeVarint()
        chain = try reader.takeFixed(UInt64.self)
        try reader.finish()
    }
}
