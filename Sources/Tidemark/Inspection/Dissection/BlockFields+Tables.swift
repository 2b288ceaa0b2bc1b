// What a sealed segment says of itself, and the manifest.

extension BlockFields {
    /// Replicas, vectors, authors and origins, which are noted besides.
    static func tables(
        _ reader: inout FieldReader, _ origins: inout BlockDecoder.Origins
    ) throws(Malformed) {
        for number in 0..<(try reader.count("replicas", eachAtLeast: 16)) {
            reader.group = "replica \(number)"
            origins.replicas.append(try reader.replica("id"))
        }
        reader.group = ""
        for number in 0..<(try reader.count("vectors")) {
            reader.group = "vector \(number)"
            try numberedVector(&reader)
        }
        reader.group = ""
        for number in 0..<(try reader.count("authors")) {
            reader.group = "author \(number)"
            origins.authors.append(String(decoding: try reader.counted("name"), as: UTF8.self))
        }
        reader.group = ""
        for number in 0..<(try reader.count("origins", eachAtLeast: 3)) {
            reader.group = "origin \(number)"
            origins.rows.append(try origin(&reader))
        }
    }

    /// In terms of replicas that have numbers.
    static func numberedVector(_ reader: inout FieldReader) throws(Malformed) {
        for _ in 0..<(try reader.count("entries", eachAtLeast: 2)) {
            try reader.varint("replica")
            try reader.varint("counter")
        }
    }

    static func origin(
        _ reader: inout FieldReader
    ) throws(Malformed) -> (replica: UInt64, author: UInt64) {
        let replica = try reader.varint("replica")
        try reader.varint("vector")
        return (replica, try reader.varint("author"))
    }

    static func datasets(
        _ reader: inout FieldReader, _ decoder: BlockDecoder
    ) throws(Malformed) {
        for number in 0..<(try reader.count("datasets", eachAtLeast: 5)) {
            reader.group = "row \(number)"
            try reader.varint("dataset") { decoder.meaning(ofDataset: $0) }
            for name in ["entries", "tombstones", "bytes of keys", "bytes of values"] {
                try reader.varint(name)
            }
        }
    }

    static func collected(
        _ reader: inout FieldReader, _ decoder: BlockDecoder
    ) throws(Malformed) {
        for number in 0..<(try reader.count("datasets", eachAtLeast: 4)) {
            reader.group = "row \(number)"
            try reader.varint("dataset") { decoder.meaning(ofDataset: $0) }
            try reader.varint("collected up to")
            try reader.varint("whole from")
            try reader.varint("whole from time") { HybridTime.meaning($0) }
        }
    }

    static func valueFiles(_ reader: inout FieldReader) throws(Malformed) {
        for number in 0..<(try reader.count("value files", eachAtLeast: 5)) {
            reader.group = "row \(number)"
            for name in [
                "value file", "its bytes", "entries", "bytes of blocks", "bytes of values",
            ] {
                try reader.varint(name)
            }
        }
    }

    static func directory(_ reader: inout FieldReader) throws(Malformed) {
        let count = try reader.number(4, "blocks")
        let common = try reader.number(4, "common length")
        guard count <= UInt64(EntryPlace.blockCountMax), common <= UInt64(reader.remaining) else {
            throw Malformed("the directory counts more than there is")
        }
        let blockCount = Int(count)
        for block in 0..<blockCount {
            reader.group = "block \(block)"
            try reader.take(8, "prefix") { bytes in
                // Stored as a number, so that the first byte of the key is the last one here.
                bytes.reversed().map { Self.hexadecimal($0) }.joined()
            }
        }
        for block in 0...blockCount {
            reader.group = block < blockCount ? "block \(block)" : ""
            try reader.number(4, block < blockCount ? "offset" : "end of the last") { mark in
                let isCompressed = mark & UInt64(SegmentDirectory.compressedMark) != 0
                let offset = (mark & ~UInt64(SegmentDirectory.compressedMark)) << 3
                return "at \(offset)" + (isCompressed ? ", compressed" : "")
            }
        }
        var starts: [Int] = []
        for position in 0..<(blockCount + 2) {
            reader.group = position < blockCount ? "block \(position)" : ""
            let name =
                position < blockCount
                ? "position" : position == blockCount ? "last position" : "end of positions"
            starts.append(Int(try reader.number(4, name) { "at \($0)" }))
        }
        reader.group = ""
        try reader.take(Int(common), "common")
        for (number, (start, end)) in zip(starts, starts.dropFirst()).enumerated() {
            reader.group = number < blockCount ? "first of block \(number)" : "last of the segment"
            guard end - start >= 12 else { throw Malformed("a position is too short") }
            try reader.take(4, "dataset") { bytes in
                "\(bytes.reduce(0) { $0 << 8 | UInt64($1) })"
            }
            try reader.take(end - start - 12, "key")
            try reader.number(8, "sync count")
        }
    }

    static func changeDirectory(
        _ reader: inout FieldReader, _ decoder: BlockDecoder
    ) throws(Malformed) {
        var row = 0
        while reader.remaining >= ChangeIndex.rowByteCount {
            reader.group = "row \(row)"
            try reader.number(4, "dataset") { decoder.meaning(ofDataset: $0) }
            try reader.number(4, "offset") { "at \($0 << 3)" }
            try reader.number(8, "sync count")
            row += 1
        }
        reader.group = ""
        try reader.number(4, "zero")
        try reader.number(4, "end") { "at \($0 << 3)" }
    }

    static func indexChecksums(_ reader: inout FieldReader) throws(Malformed) {
        var number = 0
        while reader.remaining >= 8 {
            reader.group = "part \(number)"
            try reader.number(8, "checksum") { String($0, radix: 16) }
            number += 1
        }
    }

    static func manifest(_ reader: inout FieldReader) throws(Malformed) {
        try reader.replica("replica")
        for _ in 0..<(try reader.count("former ids", eachAtLeast: 16)) {
            try reader.replica("former id")
        }
        for name in ["oldest log", "next number", "next dataset"] { try reader.varint(name) }
        try reader.varint("clock") { HybridTime.meaning($0) }
        try reader.varint("expires from") {
            $0 == 0 ? "never" : HybridTime.meaning(ofMilliseconds: $0 - 1)
        }
        for name in ["closed log", "closed at", "closed size"] { try reader.varint(name) }
        for number in 0..<(try reader.count("segments", eachAtLeast: 3)) {
            reader.group = "segment \(number)"
            for name in ["number", "bytes", "run begins with"] { try reader.varint(name) }
        }
        reader.group = ""
        guard reader.remaining > 0 else { return }
        for _ in 0..<(try reader.count("closed ids", eachAtLeast: 16)) {
            try reader.replica("closed id")
        }
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0\(digits)" : digits
    }
}
