/// The fields of those parts of a file that are no blocks, as <doc:FileFormat> has them.
enum FileFields {
    /// Says of which kind the file is, if that can be told.
    static func header(
        _ reader: inout FieldReader, decoder: inout BlockDecoder
    ) -> FileHeader.Kind? {
        var kind: FileHeader.Kind?
        do throws(Malformed) {
            try reader.take(8, "magic")
            try reader.number(4, "format version")
            let stored = try reader.number(4, "file kind") { Self.name(ofFileKind: $0) }
            kind = FileHeader.Kind(rawValue: UInt32(truncatingIfNeeded: stored))
            decoder.isLog = kind == .log
            decoder.fileNumber = try reader.number(8, "file number")
            decoder.timeBase = try reader.number(8, "made at") {
                HybridTime.meaning(ofMilliseconds: $0)
            }
            try reader.number(8, "log before") { $0 == 0 ? "none" : "\($0)" }
            try reader.number(4, "bytes it may have")
            try reader.number(4, "place") {
                $0 == 0 ? "not known" : String($0, radix: 16)
            }
            try reader.number(8, "tag of the store") { String($0, radix: 16) }
            try reader.takeSecret(16, "secret", "of its checksums; not shown")
            try reader.number(8, "checksum") { String($0, radix: 16) }
        } catch {
            reader.takeRest("damaged", error.what)
        }
        return kind
    }

    private static func name(ofFileKind kind: UInt64) -> String {
        switch FileHeader.Kind(rawValue: UInt32(truncatingIfNeeded: kind)) {
        case .log: "log"
        case .sealed: "sealed segment"
        case .manifest: "manifest"
        case .backupMark: "mark of a backup"
        case .values: "value file"
        case .partOrigin: "origin of a part"
        case .roster: "roster of changes"
        case nil: "unknown kind \(kind)"
        }
    }

    static func footer(_ reader: inout FieldReader) {
        do throws(Malformed) {
            try reader.take(8, "magic")
            for name in [
                "segment", "entries", "tombstones", "data bytes raw", "data bytes stored",
                "data blocks", "changes blocks", "end of data", "hash index at", "buckets",
            ] {
                try reader.number(8, name)
            }
            for part in [
                "directory", "change directory", "index checksums", "tables", "datasets",
                "collected", "value files",
            ] {
                reader.group = part
                try reader.number(8, "offset")
                try reader.number(4, "stored length")
                try reader.number(4, "raw length")
            }
            reader.group = ""
            try reader.number(8, "checksum") { String($0, radix: 16) }
        } catch {
            reader.takeRest("damaged", error.what)
        }
    }

    static func bucket(_ reader: inout FieldReader) {
        let keyCount = Int(reader.byte(at: 20))
        do throws(Malformed) {
            for slot in 0..<10 {
                try reader.number(2, "tag") { tag in
                    slot < keyCount ? String(tag, radix: 16) : "unused"
                }
            }
            try reader.number(1, "keys")
            try reader.number(1, "went on") { $0 == 0 ? "no" : "to the next bucket" }
            try reader.number(2, "reserved")
            for slot in 0..<10 {
                try reader.number(4, "place") { number in
                    let place = EntryPlace(rawValue: UInt32(truncatingIfNeeded: number))
                    return slot < keyCount ? "block \(place.block) at \(place.offset)" : "unused"
                }
            }
        } catch {
            reader.takeRest("damaged", error.what)
        }
    }
}

extension FieldReader {
    /// A byte ahead; 0 behind the end.
    fileprivate func byte(at index: Int) -> UInt8 {
        var ahead = self
        guard let bytes = try? ahead.take(index + 1, "") else { return 0 }
        return bytes.last ?? 0
    }
}
