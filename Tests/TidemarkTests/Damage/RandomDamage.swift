import TestSupport
import Tidemark

/// Something that disks, cables, file systems and people do to a file.
struct RandomDamage: CustomStringConvertible {
    let file: String
    let description: String
    /// What the file has become; nil if it is missing.
    let bytes: [UInt8]?

    private static let sectorBytes = 512

    /// Draws a damage of a file that changes at least one byte of it.
    init(to file: String, _ whole: [UInt8], used: Int, _ random: inout SeededGenerator) {
        while true {
            let (description, bytes) = Self.draw(whole, used: used, &random)
            if let bytes, Bytes.areEqual(bytes, whole) { continue }
            self.file = file
            self.description = "\(file) \(description)"
            self.bytes = bytes
            return
        }
    }

    /// - Parameter used: bytes that anything was written to; most damage is done there.
    private static func draw(
        _ whole: [UInt8], used: Int, _ random: inout SeededGenerator
    ) -> (String, [UInt8]?) {
        let offset = random.below(used)
        var bytes = whole
        switch random.below(8) {
        case 0, 1:
            let bit = random.below(8)
            bytes[offset] ^= 1 << bit
            return ("bit \(bit) of byte \(offset) flipped", bytes)
        case 2:
            let sectors = 1 + random.below(3)
            let start = offset / sectorBytes * sectorBytes
            let end = min(start + sectors * sectorBytes, bytes.count)
            for index in start..<end { bytes[index] = 0 }
            return ("bytes \(start)..<\(end) zeroed", bytes)
        case 3:
            return ("cut to \(offset) bytes", Array(bytes[..<offset]))
        case 4:
            return swapped(bytes, offset, random.below(used))
        case 5:
            return ("missing", nil)
        case 6:
            let count = min(1 + random.below(600), bytes.count - offset)
            bytes.insert(contentsOf: whole[offset..<(offset + count)], at: offset)
            return ("bytes \(offset)..<\(offset + count) twice", bytes)
        default:
            let count = min(1 + random.below(64), bytes.count - offset)
            bytes.replaceSubrange(offset..<(offset + count), with: random.bytes(count))
            return ("bytes \(offset)..<\(offset + count) replaced", bytes)
        }
    }

    /// Two sectors change places.
    private static func swapped(
        _ whole: [UInt8], _ offset: Int, _ other: Int
    ) -> (String, [UInt8]?) {
        let first = offset / sectorBytes * sectorBytes
        let second = other / sectorBytes * sectorBytes
        let count = min(sectorBytes, whole.count - max(first, second))
        var bytes = whole
        for index in 0..<count { bytes.swapAt(first + index, second + index) }
        return ("sectors at \(first) and \(second) swapped", bytes)
    }

    func write(to path: String) throws {
        guard let bytes else { return try Files.remove("\(path)/\(file)") }
        try Files.write(bytes, to: "\(path)/\(file)")
    }

    /// Whether any byte of a range is not what it was.
    func hits(_ range: Range<Int>, of whole: [UInt8]) -> Bool {
        guard let bytes, bytes.count >= range.upperBound else { return true }
        return !bytes[range].elementsEqual(whole[range])
    }
}
