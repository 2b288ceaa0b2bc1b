// The items of a log's block of operations.

extension BlockDecoder {
    mutating func takeItems(_ reader: inout FieldReader) throws(Malformed) {
        var number = 0
        while let code = reader.peeked, code != 0 {
            reader.group = "item \(number)"
            guard let item = LogItem.Code(rawValue: code) else {
                throw Malformed("an operation has an unknown code")
            }
            try reader.number(1, "code") { _ in item.title }
            try take(item, &reader)
            number += 1
        }
        reader.group = ""
        reader.takeRest("end", "zeros up to a multiple of 8")
    }

    private mutating func take(
        _ item: LogItem.Code, _ reader: inout FieldReader
    ) throws(Malformed) {
        switch item {
        case .replica: origins.replicas.append(try reader.replica("id"))
        case .vector: try BlockFields.numberedVector(&reader)
        case .author:
            origins.authors.append(String(decoding: try reader.counted("name"), as: UTF8.self))
        case .origin: origins.rows.append(try BlockFields.origin(&reader))
        case .entry: try BlockFields.entry(&reader, self, timeBase: timeBase)
        case .dated: break
        case .renamed, .copied: try reader.replica("id")
        case .dataset, .checkpoint, .seen, .adopted, .disowned, .forgotten, .retired:
            try reader.counted("dataset")
            try takeNamed(item, &reader)
        }
    }

    /// What follows the name of a dataset.
    private func takeNamed(
        _ item: LogItem.Code, _ reader: inout FieldReader
    ) throws(Malformed) {
        switch item {
        case .dataset:
            try reader.varint("number")
            try reader.number(1, "visible")
            try takeLifecycle(&reader)
        case .checkpoint:
            try reader.replica("peer")
            try reader.varint("pulled through")
            try reader.varint("pushed through")
            try reader.vector("vector")
        case .seen: try reader.vector("seen")
        case .adopted:
            try reader.varint("number")
            try reader.number(1, "visible")
            try takeLifecycle(&reader)
            try reader.vector("vector")
            try reader.vector("unfinished")
            try reader.varint("sync count")
            try reader.varint("not told up to")
            try reader.varint("last wipe") { HybridTime.meaning($0) }
            try reader.varint("expires from") {
                $0 == 0 ? "never" : HybridTime.meaning(ofMilliseconds: $0 - 1)
            }
            try reader.varint("time") { HybridTime.meaning($0) }
        case .disowned:
            try reader.replica("replica")
            try reader.number(1, "settled")
        case .forgotten:
            try reader.vector("vector")
            try reader.number(8, "time") { HybridTime.meaning($0) }
        case .retired: try reader.replica("peer")
        default: break
        }
    }

    private func takeLifecycle(_ reader: inout FieldReader) throws(Malformed) {
        try reader.number(1, "deleted")
        try reader.vector("wiped")
        try reader.number(8, "time") { HybridTime.meaning($0) }
        try reader.replica("stamped by")
    }
}

extension LogItem.Code {
    /// As the description of the format calls it.
    var title: String {
        switch self {
        case .replica: "replica"
        case .vector: "vector"
        case .author: "author"
        case .origin: "origin"
        case .dataset: "dataset"
        case .checkpoint: "checkpoint"
        case .seen: "seen"
        case .renamed: "renamed"
        case .adopted: "adopted"
        case .disowned: "disowned"
        case .forgotten: "forgotten"
        case .retired: "retired"
        case .entry: "entry"
        case .dated: "dated"
        case .copied: "copied"
        }
    }
}
