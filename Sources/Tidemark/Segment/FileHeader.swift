/// The first 80 bytes of every file of a store.
///
///     offset  bytes  field
///     0       8      "TIDEMARK"
///     8       4      format version
///     12      4      file kind
///     16      8      segment number; 0 for the manifest
///     24      8      milliseconds since 1970 when the file was made
///     32      8      log: the number of the log before it, 0 if it is the first; else 0
///     40      8      log: bytes that it may come to have, else 0
///     48      8      tag: drawn when the store was made, the same in all of its files
///     56      16     secret: likewise; see ``StoreIdentity``
///     72      8      XXH3-64, without the secret, of the 72 bytes before
struct FileHeader {
    static let byteCount = 80
    static let madeAtOffset = 24
    static let capacityOffset = 40
    static let magic: [UInt8] = Array("TIDEMARK".utf8)
    static let formatVersion: UInt32 = 2

    enum Kind: UInt32 {
        case log = 1
        case sealed = 2
        case manifest = 3
        case backupMark = 4
        case values = 5
        case partOrigin = 6
        case roster = 7
    }

    let kind: Kind
    let segment: UInt64
    let madeAt: UInt64
    let previousLog: UInt64
    let capacity: UInt32
    /// Of a log: the mark of the file's place, 0 if it is not known.
    let place: UInt32
    let identity: StoreIdentity

    /// The 80 bytes.
    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.append(Self.magic)
        writer.append(fixed32: Self.formatVersion)
        writer.append(fixed32: kind.rawValue)
        writer.append(fixed64: segment)
        writer.append(fixed64: madeAt)
        writer.append(fixed64: previousLog)
        writer.append(fixed32: capacity)
        writer.append(fixed32: place)
        writer.append(fixed64: identity.tag)
        writer.append(fixed64: identity.secretLow)
        writer.append(fixed64: identity.secretHigh)
        let checksum = unsafe writer.bytes.withUnsafeBytes { unsafe checksum64($0) }
        writer.append(fixed64: checksum)
        return writer.bytes
    }

    init(
        kind: Kind, segment: UInt64, identity: StoreIdentity, madeAt: UInt64,
        previousLog: UInt64 = 0,
        capacity: UInt32 = 0, place: UInt32 = 0
    ) {
        self.identity = identity
        self.capacity = capacity
        self.place = place
        self.previousLog = previousLog
        self.kind = kind
        self.segment = segment
        self.madeAt = madeAt
    }

    /// Of which store a file is, whatever kind and number its header says; nil if the header is
    /// damaged or of another format.
    static func identity(in bytes: ByteView) -> StoreIdentity? {
        var reader = ByteReader(bytes)
        do throws(Malformed) {
            guard bytes.count >= byteCount, try reader.view(8).array == magic,
                try reader.fixed32() == formatVersion
            else { return nil }
            let identity = try Self.storedIdentity(bytes)
            _ = try reader.view(60)
            let checked = unsafe UnsafeRawBufferPointer(start: bytes.base, count: byteCount - 8)
            return unsafe checksum64(checked) == (try reader.fixed64()) ? identity : nil
        } catch {
            return nil
        }
    }

    /// Of which store a file with a damaged header is, if what the header says of it is whole; nil
    /// if that cannot be known.
    ///
    /// Known it is by the first block, which the store has put there: its checksum needs the
    /// secret. No other block will do. With bytes in the place of the secret that somebody can
    /// guess, zeros say, a block within a value would seem right.
    ///
    /// - Parameter file: all of it, as far as it can be read.
    static func likelyIdentity(in file: ByteView) -> StoreIdentity? {
        let room = file.count - byteCount - BlockHeader.byteCount
        guard room >= 0, let identity = try? storedIdentity(file.prefix(byteCount)) else {
            return nil
        }
        let start = unsafe file.base + byteCount
        let first = unsafe BlockHeader(at: start)
        guard first.storedCount <= UInt32(clamping: room) else { return nil }
        let checksum = unsafe BlockHeader.checksum(
            at: start, storedCount: Int(first.storedCount), identity)
        return checksum == first.checksum ? identity : nil
    }

    private static func storedIdentity(_ header: ByteView) throws(Malformed) -> StoreIdentity {
        var reader = ByteReader(header)
        _ = try reader.view(48)
        return StoreIdentity(
            tag: try reader.fixed64(), secretLow: try reader.fixed64(),
            secretHigh: try reader.fixed64())
    }

    /// Whether it is a header of version 1, which was shorter.
    private static func isOfVersion1(_ bytes: ByteView) -> Bool {
        var reader = ByteReader(bytes)
        return (try? reader.view(8).array == magic && reader.fixed32() == 1) ?? false
    }

    /// Checks and reads a header.
    ///
    /// - Parameter identity: of the store; nil for the manifest, which says what it is.
    /// - Throws: `notAStore` without the magic, `formatTooNew`, `formatTooOld`, `corruption`.
    init(
        _ bytes: ByteView, expecting kind: Kind, segment: UInt64, identity: StoreIdentity?,
        path: String
    ) throws(StoreError) {
        let location = StoreError.Location(path: path, offset: 0)
        guard bytes.count >= Self.byteCount else {
            if Self.isOfVersion1(bytes) { throw StoreError.formatTooOld(1, location) }
            throw StoreError(
                .corruption,
                "the file is shorter than its header of \(Self.byteCount) bytes; "
                    + "restore it from a backup", location: location)
        }
        let whole = unsafe UnsafeRawBufferPointer(
            start: bytes.base, count: Self.byteCount - 8)
        var reader = ByteReader(bytes)
        do {
            let magic = try reader.view(8).array
            let version = try reader.fixed32()
            let storedKind = try reader.fixed32()
            let number = try reader.fixed64()
            let made = try reader.fixed64()
            let previous = try reader.fixed64()
            let (capacity, place) = (try reader.fixed32(), try reader.fixed32())
            let stored = StoreIdentity(
                tag: try reader.fixed64(), secretLow: try reader.fixed64(),
                secretHigh: try reader.fixed64())
            let isWhole = unsafe checksum64(whole) == (try reader.fixed64())
            guard magic == Self.magic else {
                throw StoreError(
                    isWhole ? .notAStore : .corruption,
                    "the file does not begin with TIDEMARK; it is damaged or no part of a store",
                    location: location)
            }
            guard isWhole else {
                if Self.isOfVersion1(bytes) { throw StoreError.formatTooOld(1, location) }
                throw StoreError(
                    .corruption,
                    "the checksum of the file header does not match; "
                        + "restore the file from a backup", location: location)
            }
            guard version <= Self.formatVersion else {
                throw StoreError(
                    .formatTooNew,
                    "the file has format version \(version), this build reads up to "
                        + "\(Self.formatVersion); use a newer build", location: location)
            }
            guard version >= Self.formatVersion else {
                throw StoreError.formatTooOld(version, location)
            }
            guard storedKind == kind.rawValue, number == segment else {
                throw StoreError(
                    .corruption,
                    "the file header names kind \(storedKind) and segment \(number) where kind "
                        + "\(kind.rawValue) and segment \(segment) belong; was it renamed?",
                    location: location)
            }
            guard identity == nil || stored == identity else {
                throw StoreError(
                    .corruption, "the file is of another store; restore the store's own",
                    location: location)
            }
            self.init(
                kind: kind, segment: number, identity: stored, madeAt: made,
                previousLog: previous, capacity: capacity, place: place)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(.corruption, "the file header is cut short", location: location)
        }
    }
}

extension StoreError {
    fileprivate static func formatTooOld(_ version: UInt32, _ location: Location) -> StoreError {
        StoreError(
            .formatTooOld,
            "the file has format version \(version), which was never released and which this build "
                + "does not read; make the store anew",
            location: location)
    }
}
