import Glibc
import Tidemark

/// A failure in the benchmark itself.
struct MicroFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Says something on standard error, where it does not mix with results.
func complain(_ message: String) {
    var line = "micro: \(message)\n"
    line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// A store in a directory of its own with records in it, and keys and values to use on it.
final class Fixture {
    static let keyByteCount = 16
    static let valueByteCount = 100

    let store: Store
    let dataset: Dataset
    let recordCount: Int
    /// All keys, one after the other.
    let keys: [UInt8]
    /// The key of one record.
    let key: [UInt8]
    /// Keys that were never written, likewise.
    let missingKeys: [UInt8]
    /// Half of it compresses.
    let value: [UInt8]
    private let directory: String

    /// Where the records of a fixture lie.
    enum Placement {
        case memtable
        /// In one sealed segment, whose blocks have been read once.
        case sealed
        /// The same without a block cache: each read fetches, checks and unpacks its block.
        case uncached
    }

    init(
        recordCount: Int, placement: Placement, segmentBytes: Int = 128 << 20
    ) throws {
        directory = try Self.makeDirectory()
        self.recordCount = recordCount
        let keyBytes = Self.makeKeys(recordCount, seed: 1)
        keys = keyBytes
        key = Array(keyBytes[..<Self.keyByteCount])
        missingKeys = Self.makeKeys(recordCount, seed: 2)
        let valueBytes = Self.makeValue()
        value = valueBytes
        // Nothing but what is measured: no compaction, and in cases without sealing a segment so
        // large that the next one is not even prepared.
        store = try Store.open(
            at: directory + "/store",
            options: StoreOptions(
                // What fills a log shall seal it, and not the memory that its memtable takes.
                durability: .process, segmentBytes: segmentBytes, memoryLimit: 1 << 30,
                blockCacheBytes: placement == .uncached ? 0 : 64 << 20,
                compactsAutomatically: false))
        dataset = try store.dataset("micro")
        let spans = keyBytes.span.bytes
        for number in 0..<recordCount {
            try dataset.put(valueBytes.span.bytes, for: spans.extracting(place(number)))
        }
        if placement != .memtable { try store.compact() }
        for number in 0..<recordCount {
            guard try dataset.contains(spans.extracting(place(number))) else {
                throw MicroFailure("a record that was put is not there")
            }
        }
    }

    deinit {
        do {
            try store.close()
        } catch {
            complain("the store did not close well: \(error)")
        }
        Self.removeTree(directory)
    }

    /// Where the key of a number lies in `keys` and `missingKeys`. Any number will do: they are
    /// scattered, and those beyond the last begin anew.
    @inline(__always)
    func place(_ number: Int) -> Range<Int> {
        let start = number &* 7_919 % recordCount * Self.keyByteCount
        return start..<start + Self.keyByteCount
    }

    /// Sixteen hexadecimal digits each, from a generator (SplitMix64) that begins at the seed.
    private static func makeKeys(_ count: Int, seed: UInt64) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        var state = seed
        var keys: [UInt8] = []
        keys.reserveCapacity(count * keyByteCount)
        for _ in 0..<count {
            var number = mixed(&state)
            for _ in 0..<keyByteCount {
                keys.append(digits[Int(number & 15)])
                number >>= 4
            }
        }
        return keys
    }

    private static func makeValue() -> [UInt8] {
        var state: UInt64 = 3
        return (0..<valueByteCount).map { index in
            index < valueByteCount / 2 ? UInt8(truncatingIfNeeded: mixed(&state)) : 0x61
        }
    }

    private static func mixed(_ state: inout UInt64) -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var number = state
        number = (number ^ (number >> 30)) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ (number >> 27)) &* 0x94D0_49BB_1331_11EB
        return number ^ (number >> 31)
    }

    static let parentDirectory = getenv("TMPDIR").map { String(cString: $0) } ?? P_tmpdir

    private static func makeDirectory() throws -> String {
        var template = Array("\(parentDirectory)/tidemark-micro-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template) else {
            throw MicroFailure(
                "cannot make a directory in \(parentDirectory); name another by TMPDIR")
        }
        return String(cString: path)
    }

    /// The directory holds one store, which is a directory of files.
    private static func removeTree(_ directory: String) {
        let store = directory + "/store"
        if let stream = opendir(store) {
            defer { closedir(stream) }
            while let entry = readdir(stream) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { unlink("\(store)/\(name)") }
            }
        }
        rmdir(store)
        rmdir(directory)
    }
}
