// The frame around every message. It is the same in all versions of the protocol, so that two
// sides of different versions can still tell each other so.
//
//   offset  bytes
//        0  4      "TMSY"
//        4  2      version of the protocol, little-endian
//        6  1      kind of the message
//        7  1      1 if the body is compressed, else 0
//        8  4      bytes of the body, little-endian
//       12  n      body; if compressed: varint of its plain size, then an LZ4 block
//   12 + n  8      XXH3-64 of everything before it, little-endian
//
// Nothing of the body is looked at before the checksum was found right.

import Tidemark

/// What a message is. The raw values are on the wire and frozen.
enum MessageKind: UInt8, Hashable, Sendable, CaseIterable {
    case hello = 0x01
    case pull = 0x02
    case push = 0x03
    case reconcile = 0x04
    case fetch = 0x05
    case segments = 0x06
    case segmentRange = 0x07
    case watch = 0x08
    case segmentsPush = 0x09
    case segmentRangePush = 0x0A
    case scopedPull = 0x0C
    case lookup = 0x0D
    case partPush = 0x0E
    case records = 0x0F
    case inquiry = 0x10
    case burial = 0x11
    case sweep = 0x12
    case helloAnswer = 0x81
    case pullAnswer = 0x82
    case pushAnswer = 0x83
    case reconcileAnswer = 0x84
    case fetchAnswer = 0x85
    case segmentsAnswer = 0x86
    case segmentRangeAnswer = 0x87
    case watchAnswer = 0x88
    case segmentsPushAnswer = 0x89
    case segmentRangePushAnswer = 0x8A
    case scopedPullAnswer = 0x8C
    case lookupAnswer = 0x8D
    case recordsAnswer = 0x8F
    case inquiryAnswer = 0x90
    case burialAnswer = 0x91
    case sweepAnswer = 0x92
    case failure = 0xFF
}

struct MessageFrame: Hashable, Sendable {
    static let magic: [UInt8] = Array("TMSY".utf8)
    static let kindOffset = magic.count + 2
    static let headerBytes = kindOffset + 1 + 1 + 4
    static let checksumBytes = 8

    let version: UInt16
    /// The raw value of a ``MessageKind``, or something a newer version knows.
    let kind: UInt8
    /// Plain, whether it travelled compressed or not.
    let body: [UInt8]

    /// The message as it travels.
    ///
    /// - Parameter isCompressible: false for a body that consists of compressed blocks.
    func encoded(isCompressible: Bool = true) throws(SyncError) -> [UInt8] {
        let compressed = isCompressible ? compressedBody() : nil
        let content = compressed ?? body
        let bytes = Self.headerBytes + content.count + Self.checksumBytes
        guard bytes <= SyncLimits.messageBytesMax else {
            throw SyncError(
                .tooLarge,
                "a message of \(bytes) bytes exceeds \(SyncLimits.messageBytesMax); "
                    + "lower the page size")
        }
        var writer = ByteWriter()
        writer.append(Self.magic)
        writer.putFixed(version)
        writer.put(kind)
        writer.putFlag(compressed != nil)
        writer.putFixed(UInt32(content.count))
        writer.append(content)
        writer.putFixed(Self.checksum(writer.bytes[...]))
        return writer.bytes
    }

    /// Checks the frame and unpacks the body.
    ///
    /// - Parameter bodyBytesMax: a larger body is refused before memory is taken for it.
    static func decoded(
        _ bytes: [UInt8], bodyBytesMax: Int = SyncLimits.messageBytesMax
    ) throws(SyncError) -> MessageFrame {
        guard bytes.count >= headerBytes + checksumBytes, bytes.starts(with: magic) else {
            throw .badMessage("\(bytes.count) bytes are no message of this protocol")
        }
        guard bytes.count <= SyncLimits.messageBytesMax else {
            throw SyncError(
                .tooLarge,
                "a message of \(bytes.count) bytes exceeds \(SyncLimits.messageBytesMax); "
                    + "lower the sender's page size")
        }
        let bodyEnd = bytes.count - checksumBytes
        var trailer = ByteReader(bytes[bodyEnd...])
        guard try trailer.takeFixed(UInt64.self) == checksum(bytes[..<bodyEnd]) else {
            throw .badMessage("a message of \(bytes.count) bytes arrived damaged")
        }
        var header = ByteReader(bytes[magic.count..<headerBytes])
        let version = try header.takeFixed(UInt16.self)
        let kind = try header.takeByte()
        let isCompressed = try header.takeFlag()
        guard Int(try header.takeFixed(UInt32.self)) == bodyEnd - headerBytes else {
            throw .badMessage("a message contradicts its own length")
        }
        let content = bytes[headerBytes..<bodyEnd]
        guard isCompressed else {
            return MessageFrame(version: version, kind: kind, body: Array(content))
        }
        let body = try decompressed(content, bytesMax: bodyBytesMax)
        return MessageFrame(version: version, kind: kind, body: body)
    }

    /// XXH3-64 of the bytes.
    static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        // The function reads exactly the buffer it is given, which outlives the call.
        unsafe bytes.withUnsafeBytes { unsafe checksum64($0) }
    }

    /// nil if compression does not save enough.
    private func compressedBody() -> [UInt8]? {
        guard body.count <= SyncLimits.messageBytesMax,
            // LZ4 reads exactly the buffer it is given.
            let compressed = unsafe body.withUnsafeBytes({ unsafe LZ4Block.compress($0) })
        else { return nil }
        var writer = ByteWriter()
        writer.putCount(body.count)
        writer.append(compressed)
        return writer.bytes
    }

    private static func decompressed(
        _ content: ArraySlice<UInt8>, bytesMax: Int
    ) throws(SyncError) -> [UInt8] {
        // No number is longer than ten bytes.
        var reader = ByteReader(content.prefix(10))
        let count = try reader.takeVarint()
        let compressed = content.dropFirst(reader.position)
        // LZ4 saves at most a factor of 255, so a larger claim is refused before memory is taken.
        guard (1...UInt64(SyncLimits.messageBytesMax)).contains(count),
            count <= UInt64(compressed.count) * 255
        else { throw .badMessage("a compressed body cannot hold \(count) bytes") }
        guard count <= UInt64(max(0, bytesMax)) else {
            throw SyncError(
                .tooLarge,
                "a message of \(count) bytes, unpacked, exceeds \(bytesMax); "
                    + "lower the page size or raise the peer's limit")
        }
        var isWhole = false
        let body = unsafe [UInt8](unsafeUninitializedCapacity: Int(count)) { target, initialized in
            // It never reads or writes outside the two buffers, and the target counts as
            // initialized only if all of it was written.
            isWhole = unsafe compressed.withUnsafeBytes { source in
                unsafe LZ4Block.decompress(source, into: UnsafeMutableRawBufferPointer(target))
            }
            initialized = isWhole ? Int(count) : 0
        }
        guard isWhole else { throw .badMessage("a compressed body is damaged") }
        return body
    }
}
