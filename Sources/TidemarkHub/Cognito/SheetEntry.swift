/// What the API keeps of a record beside the store: who wrote it, as it called itself, when, by its
/// own clock, and with which call, so that the call is known again if it comes once more.
///
/// It is written in one batch with the record, and counts only as long as the record is the one
/// that it was written with: of what a replica writes without the API, the record's version says
/// who and when.
struct SheetEntry: Hashable, Sendable {
    /// The store's sync count of the record.
    let position: UInt64
    let lastModifiedBy: String
    /// In milliseconds since 1970, as it was sent; nil if it was not.
    let deviceMilliseconds: Int64?
    /// nil for what no call of UpdateRecords has written, as what was imported.
    let mark: CallMark?

    /// The form of what follows. Stored; others are passed over.
    private static let form: UInt8 = 2
    /// Stored.
    private static let timeFlag: UInt8 = 1
    private static let markFlag: UInt8 = 2
    /// Of who wrote it: an id of a device has 256 characters.
    static let authorBytesMax = 1_024

    /// The form, 8 bytes position, 1 byte that says which of the next two follow, 8 bytes time, 16
    /// bytes mark, and who wrote it, to the end. Numbers begin with their highest byte.
    var encoded: [UInt8] {
        var bytes = [Self.form]
        bytes.append(contentsOf: BigEndian.bytes(position))
        let timeFlag = deviceMilliseconds == nil ? 0 : Self.timeFlag
        let markFlag = mark == nil ? 0 : Self.markFlag
        bytes.append(timeFlag | markFlag)
        if let deviceMilliseconds {
            bytes.append(contentsOf: BigEndian.bytes(UInt64(bitPattern: deviceMilliseconds)))
        }
        if let mark { bytes.append(contentsOf: mark.bytes) }
        return bytes + Array(lastModifiedBy.utf8)
    }

    init(
        position: UInt64, lastModifiedBy: String, deviceMilliseconds: Int64?,
        mark: CallMark? = nil
    ) {
        self.position = position
        self.lastModifiedBy = lastModifiedBy
        self.deviceMilliseconds = deviceMilliseconds
        self.mark = mark
    }

    /// nil for bytes that ``encoded`` never gives.
    init?(encoded bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == Self.form, let position = BigEndian.take(&rest),
            let flags = rest.popFirst(), flags <= Self.timeFlag | Self.markFlag
        else { return nil }
        self.position = position
        if flags & Self.timeFlag != 0 {
            guard let time = BigEndian.take(&rest) else { return nil }
            deviceMilliseconds = Int64(bitPattern: time)
        } else {
            deviceMilliseconds = nil
        }
        if flags & Self.markFlag != 0 {
            guard let mark = CallMark.take(&rest) else { return nil }
            self.mark = mark
        } else {
            mark = nil
        }
        guard rest.count <= Self.authorBytesMax,
            let text = String(validating: rest, as: UTF8.self)
        else { return nil }
        lastModifiedBy = text
    }
}

/// Numbers of 64 bits as they stand in keys, values and tokens of the hub: the highest byte first,
/// so that their order is that of their bytes.
enum BigEndian {
    static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }

    /// Takes one from the front; nil if there are fewer than 8 bytes.
    static func take(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        guard bytes.count >= 8 else { return nil }
        var number: UInt64 = 0
        for byte in bytes.prefix(8) { number = number << 8 | UInt64(byte) }
        bytes = bytes.dropFirst(8)
        return number
    }
}
