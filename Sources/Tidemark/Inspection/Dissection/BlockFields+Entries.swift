/// The fields of blocks by their kinds, as <doc:FileFormat> has them.
enum BlockFields {
    /// An entry, in logs and in data blocks alike.
    ///
    /// - Parameter timeBase: milliseconds from which its time counts.
    static func entry(
        _ reader: inout FieldReader, _ decoder: BlockDecoder, timeBase: UInt64
    ) throws(Malformed) {
        try reader.varint("dataset") { decoder.meaning(ofDataset: $0) }
        let expiryFlag: UInt64 = 1 << 17
        let keyMark = try reader.varint("key length") { mark in
            let length = (mark & ~expiryFlag) >> 1
            return "\(length)" + (mark & 1 == 1 ? ", older than the one before" : "")
                + (mark & expiryFlag != 0 ? ", expires" : "")
        }
        let form = try reader.varint("kind") { form in
            switch form {
            case 0: "deleted"
            case 1: "a value that lies apart"
            default: "a value of \(form - 2) bytes"
            }
        }
        try reader.take(try length((keyMark & ~expiryFlag) >> 1, reader), "key")
        if form == 1 {
            try handle(&reader)
        } else if form > 2 {
            try reader.take(try length(form - 2, reader), "value")
        }
        if keyMark & expiryFlag != 0 {
            try reader.number(6, "expires at") { HybridTime.meaning(ofMilliseconds: $0) }
        }
        let syncCount = try reader.varint("sync count")
        try reader.varint("origin") { decoder.origins.meaning($0) }
        try reader.varint("counter") { "\(syncCount &+ EntryLayout.unzigzag($0))" }
        try reader.varint("time") { number in
            HybridTime.meaning(timeBase << 16 &+ EntryLayout.unzigzag(number))
        }
    }

    private static func length(
        _ number: UInt64, _ reader: FieldReader
    ) throws(Malformed) -> Int {
        guard number <= UInt64(reader.remaining) else {
            throw Malformed("a key or value is longer than its block")
        }
        return Int(number)
    }

    /// Where a value lies that is apart.
    private static func handle(_ reader: inout FieldReader) throws(Malformed) {
        try reader.varint("value file")
        try reader.varint("block") { "at \($0.multipliedReportingOverflow(by: 8).partialValue)" }
        try reader.varint("value length")
        try reader.varint("saved") { $0 == 0 ? "not compressed" : "\($0) bytes by compression" }
    }

    /// Base of the times, entries, where each begins, how many there are.
    static func data(
        _ reader: inout FieldReader, _ decoder: BlockDecoder
    ) throws(Malformed) {
        let base = try reader.number(8, "time base") { HybridTime.meaning(ofMilliseconds: $0) }
        let count = Int(reader.lastNumber(byteCount: 2))
        var number = 0
        while number < count, reader.remaining > 2 + 2 * count {
            reader.group = "entry \(number)"
            try entry(&reader, decoder, timeBase: base)
            number += 1
        }
        reader.group = "offsets"
        for entry in 0..<count { try reader.number(2, "entry \(entry)") { "at \($0)" } }
        reader.group = ""
        try reader.number(2, "entries")
    }

    /// Where each change of each dataset is.
    static func changes(
        _ reader: inout FieldReader, _ decoder: BlockDecoder
    ) throws(Malformed) {
        var syncCount: UInt64 = 0
        var place: UInt32 = 0
        var line = 0
        while !reader.isAtEnd {
            reader.group = "line \(line)"
            if reader.peeked == 0 {
                try reader.varint("a dataset begins")
                try reader.varint("dataset") { decoder.meaning(ofDataset: $0) }
                syncCount = try reader.varint("sync count")
            } else {
                let before = syncCount
                let step = try reader.varint("sync count") { "\(before &+ $0)" }
                syncCount = before &+ step
            }
            let before = place
            let step = try reader.varint("place") { Self.meaning(ofPlace: Self.moved(before, $0)) }
            place = Self.moved(before, step)
            line += 1
        }
    }

    private static func moved(_ place: UInt32, _ number: UInt64) -> UInt32 {
        place &+ UInt32(truncatingIfNeeded: EntryLayout.unzigzag(number))
    }

    static func meaning(ofPlace number: UInt32) -> String {
        let place = EntryPlace(rawValue: number)
        return "block \(place.block) at \(place.offset)"
    }
}

extension FieldReader {
    /// The number in the last bytes of what is left; 0 if there are fewer.
    func lastNumber(byteCount: Int) -> UInt64 {
        var ahead = self
        guard remaining >= byteCount, (try? ahead.take(remaining - byteCount, "")) != nil,
            let bytes = try? ahead.take(byteCount, "")
        else { return 0 }
        return Self.littleEndian(bytes)
    }
}
