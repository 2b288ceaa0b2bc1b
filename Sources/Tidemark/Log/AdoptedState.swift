/// What a dataset becomes that never had an entry when it takes over the records that another
/// replica has sealed, or another number for none: as the log tells it.
///
///     varint dataset number, byte 1 if visible, lifecycle, vector, vector of unfinished exchanges,
///     varint sync count, varint count up to which changes cannot be told, varint time of the last
///     wipe, varint 1 + time of the first expiry or 0, varint greatest time of any version
///
/// It takes the place of what the dataset was; its peers stay.
struct AdoptedState: Hashable {
    /// The number of the records, which are in the sealed segments already. Not 0.
    var records: DatasetID
    var isVisible: Bool
    var lifecycle: DatasetLifecycle
    var vector = VersionVector()
    var outstanding = VersionVector()
    var syncCount: UInt64 = 0
    var expiredThrough: UInt64 = 0
    var wipedTime: UInt64 = 0
    /// In milliseconds since 1970; `.max` if no record expires.
    var expiresFrom = UInt64.max
    /// No version of the records has a greater time.
    var timeMax: UInt64 = 0

    init(records: DatasetID, isVisible: Bool, lifecycle: DatasetLifecycle) {
        self.records = records
        self.isVisible = isVisible
        self.lifecycle = lifecycle
    }

    func write(to writer: inout some ByteSink) {
        writer.append(varint: UInt64(records))
        writer.append(byte: isVisible ? 1 : 0)
        writer.append(lifecycle)
        writer.append(vector)
        writer.append(outstanding)
        writer.append(varint: syncCount)
        writer.append(varint: expiredThrough)
        writer.append(varint: wipedTime)
        writer.append(varint: expiresFrom &+ 1)
        writer.append(varint: timeMax)
    }

    init(from reader: inout ByteReader) throws(Malformed) {
        records = try reader.datasetID()
        guard records > 0 else { throw Malformed("a dataset takes over records without a number") }
        isVisible = try reader.byte() == 1
        lifecycle = try reader.lifecycle()
        vector = try reader.vector()
        outstanding = try reader.vector()
        syncCount = try reader.varintCount()
        expiredThrough = try reader.varintCount()
        wipedTime = try reader.varint()
        expiresFrom = try reader.varint() &- 1
        timeMax = try reader.varint()
    }
}
