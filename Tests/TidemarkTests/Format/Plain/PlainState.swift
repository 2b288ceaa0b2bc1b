import TestSupport

/// What is known of one dataset.
struct PlainState {
    struct Peer: Equatable {
        var pulledThrough: UInt64 = 0
        var pushedThrough: UInt64 = 0
        var vector = PlainVector()

        init() {}

        init(_ reader: inout PlainBytes) throws {
            pulledThrough = try reader.varint()
            pushedThrough = try reader.varint()
            vector = try reader.vector()
        }
    }

    /// Of its records; 0 if it can have none.
    private(set) var number: UInt64 = 0
    private(set) var isVisible = false
    private(set) var isDeleted = true
    private(set) var wiped = PlainVector()
    private(set) var lifecycleTime: UInt64 = 0
    private(set) var vector = PlainVector()
    private(set) var unfinished = PlainVector()
    private(set) var syncCount: UInt64 = 0
    private(set) var untoldThrough: UInt64 = 0
    private(set) var wipedTime: UInt64 = 0
    /// 1 + milliseconds since 1970 before which no record expires; 0 if none does.
    private(set) var expiryMark: UInt64 = 0
    private(set) var peers: [PlainID: Peer] = [:]
    private(set) var forgotten = PlainVector()
    private(set) var forgottenTime: UInt64 = 0
    private(set) var retired: Set<PlainID> = []

    init() {}

    /// As a segment has it.
    init(_ bytes: [UInt8]) throws {
        var reader = PlainBytes(bytes)
        try readNumberAndLifecycle(&reader)
        try readProgress(&reader)
        for _ in 0..<(try reader.count()) {
            let id = try reader.id()
            try require(peers.keys.allSatisfy { $0 < id }, "peers are out of order")
            peers[id] = try Peer(&reader)
        }
        if !reader.isAtEnd {
            forgotten = try reader.vector()
            forgottenTime = try reader.fixed(8)
            for _ in 0..<(try reader.count()) { retired.insert(try reader.id()) }
        }
        try require(reader.isAtEnd, "a state is followed by \(reader.left) bytes")
    }

    private mutating func readNumberAndLifecycle(_ reader: inout PlainBytes) throws {
        number = try reader.varint()
        isVisible = try reader.flag()
        isDeleted = try reader.flag()
        wiped = try reader.vector()
        lifecycleTime = try reader.fixed(8)
        _ = try reader.id()
    }

    private mutating func readProgress(_ reader: inout PlainBytes) throws {
        vector = try reader.vector()
        unfinished = try reader.vector()
        syncCount = try reader.varint()
        untoldThrough = try reader.varint()
        wipedTime = try reader.varint()
        expiryMark = try reader.varint()
    }

    // MARK: - What the items of logs say

    /// - Parameter timeMax: the greatest time so far.
    mutating func applyDataset(
        number newNumber: UInt64, _ reader: inout PlainBytes, timeMax: inout UInt64
    ) throws {
        isVisible = try reader.flag()
        isDeleted = try reader.flag()
        wiped = try reader.vector()
        lifecycleTime = try reader.fixed(8)
        _ = try reader.id()
        timeMax = max(timeMax, lifecycleTime)
        if number != 0, number != newNumber {
            syncCount += 1
            untoldThrough = syncCount
            wipedTime = max(wipedTime, timeMax)
            expiryMark = 0
        }
        number = newNumber
        guard number == 0, !unfinished.isEmpty else { return }
        unfinished = PlainVector()
        for id in peers.keys { peers[id]!.pulledThrough = 0 }
    }

    mutating func applyCheckpoint(_ reader: inout PlainBytes) throws {
        let id = try reader.id()
        peers[id] = try Peer(&reader)
        retired.remove(id)
    }

    mutating func applyAdopted(_ reader: inout PlainBytes, timeMax: inout UInt64) throws {
        try readNumberAndLifecycle(&reader)
        try readProgress(&reader)
        timeMax = max(timeMax, lifecycleTime, try reader.varint())
    }

    mutating func applySeen(_ reader: inout PlainBytes) throws {
        vector.join(try reader.vector())
        if vector.covers(unfinished) { unfinished = PlainVector() }
    }

    mutating func applyDisowned(_ reader: inout PlainBytes) throws {
        let id = try reader.id()
        let greatest = max(vector[id], unfinished[id])
        vector.remove(id)
        unfinished.remove(id)
        if try !reader.flag() { unfinished.join(id, greatest) }
    }

    mutating func applyForgotten(_ reader: inout PlainBytes) throws {
        forgotten.join(try reader.vector())
        forgottenTime = max(forgottenTime, try reader.fixed(8))
    }

    mutating func applyRetired(_ reader: inout PlainBytes) throws {
        let id = try reader.id()
        peers[id] = nil
        retired.insert(id)
    }

    mutating func apply(_ entry: PlainEntry, own: PlainID) {
        syncCount = max(syncCount, entry.syncCount)
        if entry.replica == own { vector.join(own, entry.counter) }
        if !vector.covers(entry.seen) { unfinished.join(entry.seen) }
        if entry.value != nil, entry.expiry > 0 {
            expiryMark = expiryMark == 0 ? entry.expiry + 1 : min(expiryMark, entry.expiry + 1)
        }
    }
}
