/// What one entry of the store does to its key. The numbers go into digests, which replicas
/// compare.
enum EntryKind: UInt8 {
    case put = 1
    case delete = 2
}

/// A place in the order of all entries: dataset, then key, then the newest first.
struct EntryPosition {
    let dataset: DatasetID
    let key: ByteView
    let syncCount: UInt64

    /// Before every version of the key.
    init(before key: ByteView, in dataset: DatasetID) {
        self.init(dataset: dataset, key: key, syncCount: .max)
    }

    init(dataset: DatasetID, key: ByteView, syncCount: UInt64) {
        self.dataset = dataset
        self.key = key
        self.syncCount = syncCount
    }

    /// Negative, 0 or positive.
    @inline(__always)
    func compare(_ other: EntryPosition) -> Int {
        if dataset != other.dataset { return dataset < other.dataset ? -1 : 1 }
        let order = key.compare(other.key)
        if order != 0 { return order }
        return syncCount == other.syncCount ? 0 : (syncCount > other.syncCount ? -1 : 1)
    }
}

/// What an entry says of its version, in the numbers of its segment.
struct Stamp {
    var syncCount: UInt64
    /// A number in the ``VersionTables`` of the segment.
    var origin: UInt32
    var counter: UInt64
    var time: UInt64
    /// When the record expires, in milliseconds since 1970; 0 if it does not.
    var expiresAt: UInt64 = 0
}

extension Stamp {
    /// The time from which on the version is what a reader sees. The tombstone of a record that
    /// has expired has the stamp of the record itself, and counts from the expiry on.
    @inline(__always)
    func effectTime(of kind: EntryKind) -> UInt64 {
        expiresAt > 0 && kind == .delete ? max(time, expiresAt << 16) : time
    }

    /// Whether it is that of a mark: the record was dropped in this store alone.
    @inline(__always)
    func isMark(of kind: EntryKind) -> Bool { kind == .delete && counter == 0 }
}

/// One version of one record where it lies: in the log that a memtable indexes, or in a block of
/// a sealed segment. Borrowed: good as long as the cursor that gave it stands where it stood, or
/// the block or mapping is held.
///
/// Key and value are found at once; the stamp, which most readers never ask for, is decoded on
/// demand.
@safe
struct Entry {
    let dataset: DatasetID
    /// What stands in place of the value's length, or 2 where that is more.
    fileprivate let form: UInt8
    /// Whether the entry before this one in its block is a newer version of the same key.
    let isSuperseded: Bool
    /// Whether the version says when it expires.
    let hasExpiry: Bool
    let key: ByteView
    /// The value, or where it lies apart: ask ``VersionTables/withValue(of:_:)`` for the value.
    let valueField: ByteView
    /// The place in the order of all commits of the store; 0 in sealed segments, where whoever
    /// holds the segment may see all of it.
    let sequence: UInt64
    fileprivate let stampStart: UnsafeRawPointer
    /// Where the milliseconds lie that the time is counted from.
    fileprivate let timeBase: UnsafeRawPointer

    /// Whether the longest stamp would end there or before.
    func isWhole(before end: UnsafeRawPointer) -> Bool {
        unsafe stampStart + EntryLayout.stampBytesMax <= end
    }

    @inline(__always)
    var kind: EntryKind { form == 0 ? .delete : .put }

    /// Whether the value lies in a value file.
    @inline(__always)
    var isApart: Bool { form == UInt8(EntryLayout.apartMark) }

    /// O(1), a varint to decode.
    var syncCount: UInt64 {
        var place = unsafe stampStart
        return unsafe EntryLayout.varint(&place)
    }

    /// When the record expires, in milliseconds since 1970; 0 if it does not. O(1).
    @inline(__always)
    var expiresAt: UInt64 {
        guard hasExpiry else { return 0 }
        let field = unsafe stampStart - EntryLayout.expiryByteCount
        // Behind the six bytes stands a stamp, so that eight can be loaded.
        return unsafe UInt64(littleEndian: field.loadUnaligned(as: UInt64.self))
            & EntryLayout.expiryMax
    }

    /// Whether there is a value for a reader at that time, in milliseconds since 1970; at 0
    /// nothing has expired yet.
    @inline(__always)
    func isLive(at now: UInt64) -> Bool {
        kind == .put && (!hasExpiry || expiresAt > now)
    }

    var position: EntryPosition {
        EntryPosition(dataset: dataset, key: key, syncCount: syncCount)
    }

    var stamp: Stamp {
        var place = unsafe stampStart
        let syncCount = unsafe EntryLayout.varint(&place)
        let origin = unsafe UInt32(truncatingIfNeeded: EntryLayout.varint(&place))
        let counter = unsafe syncCount &+ EntryLayout.unzigzag(EntryLayout.varint(&place))
        let base = unsafe UInt64(littleEndian: timeBase.loadUnaligned(as: UInt64.self)) << 16
        let time = unsafe base &+ EntryLayout.unzigzag(EntryLayout.varint(&place))
        return Stamp(
            syncCount: syncCount, origin: origin, counter: counter, time: time,
            expiresAt: expiresAt)
    }
}

/// How an entry lies in logs and in data blocks alike:
///
///     varint  dataset
///     varint  2 x length of the key, + 1 if the entry before is a newer version of the same key,
///             + 2^17 if it says when it expires
///     varint  0: the record is deleted; 1: the value lies apart; n + 2: a value of n bytes
///             key; value, or the ``ValueHandle`` of one that lies apart
///     6 bytes when it expires, in milliseconds since 1970; only if it does
///     varint  sync count
///     varint  origin
///     varint  counter - sync count, zigzag
///     varint  time - base, zigzag; the base is that of the block or log, in milliseconds
///
/// What a reader of a value needs stands in front. A write of the store's own has its counter
/// equal to its sync count, so long as nothing came from others. That an entry expires makes its
/// second varint three bytes long, so a head of three one-byte varints says that it does not.
@safe
enum EntryLayout {
    /// No entry's stamp reaches further than this behind its value: when it expires, and four
    /// varints. Whoever holds entries keeps as much readable memory behind the last of them, so
    /// that the stamp of a block that changed under us is nonsense at worst and never a read
    /// outside.
    static let stampBytesMax = expiryByteCount + 40
    static let expiryByteCount = 6
    /// Of 48 bits of milliseconds, as many as a hybrid time has.
    static let expiryMax = Limits.expiryMax
    /// In the varint of the key's length: above twice the greatest length and the bit below.
    private static let expiryFlag: UInt64 = 1 << 17
    /// Three varints.
    static let headBytesMax = 15
    /// In the place of the value's length: the value lies in a value file.
    fileprivate static let apartMark = 1

    /// Upper bound of what an entry takes.
    static func byteCountMax(key: Int, value: Int) -> Int {
        key + value + headBytesMax + stampBytesMax
    }

    @inline(__always)
    static func zigzag(_ difference: UInt64) -> UInt64 {
        let signed = Int64(bitPattern: difference)
        return UInt64(bitPattern: (signed << 1) ^ (signed >> 63))
    }

    @inline(__always)
    static func unzigzag(_ number: UInt64) -> UInt64 {
        (number >> 1) ^ (0 &- (number & 1))
    }

    /// A varint of at most ten bytes, without a bound.
    @inline(__always)
    static func varint(_ place: inout UnsafeRawPointer) -> UInt64 {
        let first = unsafe place.load(as: UInt8.self)
        unsafe place += 1
        if first < 0x80 { return UInt64(first) }
        var number = UInt64(first & 0x7F)
        var shift: UInt64 = 7
        while shift < 70 {
            let next = unsafe place.load(as: UInt8.self)
            unsafe place += 1
            number |= UInt64(next & 0x7F) << shift
            if next < 0x80 { break }
            shift += 7
        }
        return number
    }

    /// The entry that begins at `start`; nil if head, key and value do not end at `end` or before.
    @inline(__always)
    static func entry(
        at start: UnsafeRawPointer, end: UnsafeRawPointer, timeBase: UnsafeRawPointer,
        sequence: UInt64 = 0
    ) -> Entry? {
        let room = unsafe end - start
        guard room >= 4 else { return nil }
        let head = unsafe UInt32(littleEndian: start.loadUnaligned(as: UInt32.self))
        if head & 0x80_8080 == 0 {
            // What seven bits can say is within all bounds, and cannot say that it expires.
            return unsafe entry(
                dataset: DatasetID(head & 0x7F), keyMark: Int(head >> 8 & 0x7F),
                valueMark: Int(head >> 16 & 0x7F), hasExpiry: false, at: start + 3, end: end,
                timeBase: timeBase, sequence: sequence)
        }
        let isNearEnd = room < headBytesMax + stampBytesMax
        if isNearEnd, unsafe !isWhole(start, room) { return nil }
        var place = unsafe start
        let dataset = unsafe varint(&place)
        let mark = unsafe varint(&place)
        let valueMark = unsafe varint(&place)
        let keyMark = mark & ~expiryFlag
        guard dataset <= UInt64(UInt32.max), keyMark >> 1 <= UInt64(Limits.keyBytesMax),
            valueMark <= UInt64(Limits.valueBytesMax) + 2
        else { return nil }
        return unsafe entry(
            dataset: DatasetID(truncatingIfNeeded: dataset), keyMark: Int(keyMark),
            valueMark: Int(valueMark), hasExpiry: mark & expiryFlag != 0, at: place, end: end,
            timeBase: timeBase, sequence: sequence)
    }

    /// - Parameter place: of the key.
    @inline(__always)
    private static func entry(
        dataset: DatasetID, keyMark: Int, valueMark: Int, hasExpiry: Bool,
        at place: UnsafeRawPointer, end: UnsafeRawPointer, timeBase: UnsafeRawPointer,
        sequence: UInt64
    ) -> Entry? {
        let keyCount = keyMark &>> 1
        let valueStart = unsafe place + keyCount
        let valueCount: Int
        if valueMark == apartMark {
            guard let count = unsafe handleByteCount(at: valueStart, end: end) else { return nil }
            valueCount = count
        } else {
            valueCount = max(0, valueMark &- 2)
        }
        let valueEnd = unsafe valueStart + valueCount
        guard unsafe valueEnd <= end else { return nil }
        return unsafe Entry(
            dataset: dataset, form: UInt8(truncatingIfNeeded: min(valueMark, apartMark &+ 1)),
            isSuperseded: keyMark & 1 == 1, hasExpiry: hasExpiry,
            key: ByteView(base: place, count: keyCount),
            valueField: ByteView(base: valueStart, count: valueCount), sequence: sequence,
            stampStart: valueEnd + (hasExpiry ? expiryByteCount : 0), timeBase: timeBase)
    }

    /// The length of what says where a value lies apart; nil if it is impossible.
    @inline(never)
    private static func handleByteCount(
        at start: UnsafeRawPointer, end: UnsafeRawPointer
    ) -> Int? {
        guard unsafe start < end else { return nil }
        var reader = ByteReader(unsafe ByteView(base: start, count: end - start))
        do {
            _ = try ValueHandle(&reader)
            return reader.offset
        } catch {
            return nil
        }
    }

    /// Whether three varints end within the room: asked only near the end of a block.
    private static func isWhole(_ start: UnsafeRawPointer, _ room: Int) -> Bool {
        var reader = ByteReader(unsafe ByteView(base: start, count: room))
        do {
            for _ in 0..<3 { _ = try reader.varint() }
            return true
        } catch {
            return false
        }
    }

    /// The same with every field checked that can be checked alone, for bytes that were never
    /// looked at: also says where the entry ends.
    static func checkedEntry(
        at start: UnsafeRawPointer, end: UnsafeRawPointer, timeBase: UnsafeRawPointer,
        originCount: Int
    ) throws(Malformed) -> (entry: Entry, end: UnsafeRawPointer) {
        guard unsafe start < end, let entry = unsafe entry(at: start, end: end, timeBase: timeBase)
        else { throw Malformed("an entry is cut short or has an impossible length") }
        guard unsafe entry.stampStart <= end, !entry.hasExpiry || entry.expiresAt > 0 else {
            throw Malformed("an entry has an impossible time of expiry")
        }
        let rest = unsafe ByteView(base: entry.stampStart, count: end - entry.stampStart)
        var reader = ByteReader(rest)
        let syncCount = try reader.varintCount()
        let origin = try reader.varint32()
        let difference = try reader.varint()
        _ = try reader.varint()
        guard Int(origin) < originCount else {
            throw Malformed("an entry names an origin that is not in the tables")
        }
        guard syncCount &+ unzigzag(difference) <= Limits.countMax else {
            throw Malformed("an entry counts further than anyone can")
        }
        return unsafe (entry, rest.base + reader.offset)
    }

    // MARK: - Writing

    /// Writes an entry, for which there must be ``byteCountMax(key:value:)`` bytes of room.
    /// Returns where it ends.
    ///
    /// - Parameter isApart: whether what is given as the value says where the value lies.
    @inline(__always)
    static func write(
        to start: UnsafeMutableRawPointer, dataset: DatasetID, kind: EntryKind,
        isSuperseded: Bool, isApart: Bool = false, key: ByteView, value: ByteView, stamp: Stamp,
        timeBase: UInt64
    ) -> UnsafeMutableRawPointer {
        var place = unsafe start
        unsafe put(UInt64(dataset), &place)
        let flags = (isSuperseded ? 1 : 0) | (stamp.expiresAt > 0 ? expiryFlag : 0)
        unsafe put(UInt64(key.count) << 1 | flags, &place)
        unsafe put(valueMark(kind, isApart: isApart, value: value.count), &place)
        unsafe place.copyMemory(from: key.base, byteCount: key.count)
        unsafe place += key.count
        if kind == .put {
            unsafe place.copyMemory(from: value.base, byteCount: value.count)
            unsafe place += value.count
        }
        if stamp.expiresAt > 0 {
            // Eight bytes are stored, and the stamp goes over the last two.
            unsafe place.storeBytes(of: stamp.expiresAt.littleEndian, as: UInt64.self)
            unsafe place += expiryByteCount
        }
        unsafe put(stamp.syncCount, &place)
        unsafe put(UInt64(stamp.origin), &place)
        unsafe put(zigzag(stamp.counter &- stamp.syncCount), &place)
        unsafe put(zigzag(stamp.time &- timeBase << 16), &place)
        return unsafe place
    }

    @inline(__always)
    private static func valueMark(_ kind: EntryKind, isApart: Bool, value: Int) -> UInt64 {
        if isApart { return UInt64(apartMark) }
        return kind == .put ? UInt64(value) + 2 : 0
    }

    /// Bytes of the three varints in front of the key.
    @inline(__always)
    static func headByteCount(
        dataset: DatasetID, kind: EntryKind, isApart: Bool, key: Int, value: Int, hasExpiry: Bool
    ) -> Int {
        func count(_ number: UInt64) -> Int {
            max(1, (UInt64.bitWidth - number.leadingZeroBitCount + 6) / 7)
        }
        return count(UInt64(dataset)) + count(UInt64(key) << 1 | (hasExpiry ? expiryFlag : 0))
            + count(valueMark(kind, isApart: isApart, value: value))
    }

    @inline(__always)
    private static func put(_ number: UInt64, _ place: inout UnsafeMutableRawPointer) {
        var rest = number
        while rest >= 0x80 {
            unsafe place.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, as: UInt8.self)
            unsafe place += 1
            rest >>= 7
        }
        unsafe place.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
        unsafe place += 1
    }
}
