import Tidemark

// How a settled conflict is stored. What it says of versions is written as in a message, so that a
// replica or a vector that all of them share is there once.
//
//   form (1), policy, varint policy version, decision, flag and replica: peer, flag and 8 bytes:
//   exchange, counted key, ancestry (0 none, 1 not kept, 2 and side), side: local, side: remote,
//   content: outcome, varint expiry of the outcome; then the stamp: the write that it became
//
//   side: version, content, varint expiry or 0
//   content: 0 deleted; 1 and counted value; 2 and varint length of a value left out; of the
//   outcome also 3 as local, 4 as remote

extension SettledConflict {
    /// The first byte. An entry of another form is of a later version: lists pass it by, and it
    /// goes when its time has come.
    private static let form: UInt8 = 1
    private static let likeLocal: UInt8 = 3
    private static let likeRemote: UInt8 = 4

    /// All but ``write``, which the store adds.
    var encoded: [UInt8] {
        var writer = VersionWriter()
        writer.plain {
            $0.put(Self.form)
            $0.put(policy.code)
            $0.putVarint(policyVersion)
            $0.put(decision.code)
            $0.putFlag(peer != nil)
        }
        if let peer { writer.putReplica(peer) }
        writer.plain {
            $0.putFlag(exchange != nil)
            if let exchange { $0.putFixed(exchange) }
            $0.putBytes(key)
        }
        switch ancestry {
        case .nonexistent: writer.plain { $0.put(0) }
        case .notKept: writer.plain { $0.put(1) }
        case .known(let side):
            writer.plain { $0.put(2) }
            writer.putSide(side)
        }
        writer.putSide(local)
        writer.putSide(remote)
        if outcome == local.content {
            writer.plain { $0.put(Self.likeLocal) }
        } else if outcome == remote.content {
            writer.plain { $0.put(Self.likeRemote) }
        } else {
            writer.putContent(outcome)
        }
        writer.plain { $0.putVarint(outcomeExpiresAt ?? 0) }
        return writer.bytes
    }

    /// nil if the bytes are no such entry.
    init?(dataset: String, time: HybridTime, decoding bytes: [UInt8]) {
        do throws(SyncError) {
            var reader = VersionReader(bytes)
            try self.init(dataset: dataset, time: time, from: &reader)
        } catch {
            return nil
        }
    }

    private init(
        dataset: String, time: HybridTime, from reader: inout VersionReader
    ) throws(SyncError) {
        self.dataset = dataset
        self.time = time
        guard try reader.takeCode() == Self.form else {
            throw .badMessage("a settled conflict is of a later form")
        }
        policy = try Policy.named(by: try reader.takeCode())
        policyVersion = try reader.plain { reader throws(SyncError) in try reader.takeVarint() }
        decision = try SyncResult.Settlement.Decision.named(by: try reader.takeCode())
        peer = try reader.takeFlag() ? try reader.takeReplica() : nil
        let hasExchange = try reader.takeFlag()
        exchange =
            hasExchange
            ? try reader.plain { reader throws(SyncError) in try reader.takeFixed(UInt64.self) }
            : nil
        key = try reader.plain { reader throws(SyncError) in
            try reader.takeBytes("key", max: Limits.keyBytesMax)
        }
        switch try reader.takeCode() {
        case 0: ancestry = .nonexistent
        case 1: ancestry = .notKept
        case 2: ancestry = .known(try reader.takeSide())
        case let other: throw .badMessage("\(other) is no ancestry")
        }
        local = try reader.takeSide()
        remote = try reader.takeSide()
        switch try reader.takeCode() {
        case Self.likeLocal: outcome = local.content
        case Self.likeRemote: outcome = remote.content
        case let code: outcome = try reader.takeContent(code)
        }
        outcomeExpiresAt = try reader.takeExpiry()
        write = try reader.takeStampedDot()
        try reader.finish()
    }
}

extension VersionWriter {
    fileprivate mutating func putSide(_ side: SettledConflict.Side) {
        putVersion(side.version)
        putContent(side.content)
        plain { $0.putVarint(side.expiresAt ?? 0) }
    }

    fileprivate mutating func putContent(_ content: SettledConflict.Content) {
        plain {
            switch content {
            case .deleted:
                $0.put(0)
            case .value(let bytes):
                $0.put(1)
                $0.putBytes(bytes)
            case .leftOut(let byteCount):
                $0.put(2)
                $0.putCount(byteCount)
            }
        }
    }
}

extension VersionReader {
    /// A byte that stands for one of a few things.
    mutating func takeCode() throws(SyncError) -> UInt8 {
        try plain { reader throws(SyncError) in try reader.takeByte() }
    }

    /// nil for 0.
    mutating func takeExpiry() throws(SyncError) -> UInt64? {
        let time = try plain { reader throws(SyncError) in try reader.takeVarint() }
        return time == 0 ? nil : time
    }

    /// What ``SystemNote/Stamp/dot(ofWrite:)`` adds.
    mutating func takeStampedDot() throws(SyncError) -> Dot {
        try plain { reader throws(SyncError) in
            let high = try reader.takeFixed(UInt64.self)
            let low = try reader.takeFixed(UInt64.self)
            return Dot(
                replica: ReplicaID(high: high, low: low),
                counter: try reader.takeFixed(UInt64.self))
        }
    }

    fileprivate mutating func takeSide() throws(SyncError) -> SettledConflict.Side {
        let version = try takeVersion()
        let code = try takeCode()
        let content = try takeContent(code)
        return SettledConflict.Side(
            version: version, content: content, expiresAt: try takeExpiry())
    }

    fileprivate mutating func takeContent(
        _ code: UInt8
    ) throws(SyncError) -> SettledConflict.Content {
        switch code {
        case 0: return .deleted
        case 1:
            return .value(
                try plain { reader throws(SyncError) in
                    try reader.takeBytes("value", max: Limits.valueBytesMax)
                })
        case 2: return .leftOut(byteCount: try takeNumber(max: Limits.valueBytesMax))
        case let other: throw .badMessage("\(other) is no content")
        }
    }
}

extension SettledConflict.Policy {
    /// Stored; never changed and never given to another.
    fileprivate var code: UInt8 {
        switch self {
        case .lastWriterWins: 1
        case .keepLocal: 2
        case .keepRemote: 3
        case .autoMerge: 4
        case .mergeable: 5
        case .custom: 6
        case .application: 7
        case .replay: 8
        }
    }

    fileprivate static func named(by code: UInt8) throws(SyncError) -> Self {
        guard let found = allCases.first(where: { $0.code == code }) else {
            throw .badMessage("\(code) is no policy")
        }
        return found
    }
}

extension SyncResult.Settlement.Decision {
    /// Stored; never changed and never given to another.
    fileprivate var code: UInt8 {
        switch self {
        case .local: 1
        case .remote: 2
        case .merged: 3
        case .deleted: 4
        }
    }

    fileprivate static func named(by code: UInt8) throws(SyncError) -> Self {
        for decision in [Self.local, .remote, .merged, .deleted] where decision.code == code {
            return decision
        }
        throw .badMessage("\(code) is no decision")
    }
}
