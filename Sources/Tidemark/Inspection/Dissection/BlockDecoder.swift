/// Names the fields of blocks, one after the other in the order of their file.
struct BlockDecoder {
    var isLog = false
    var fileNumber: UInt64 = 0
    /// Milliseconds from which the times of a log's entries count.
    var timeBase: UInt64 = 0
    var origins = Origins()
    let datasetName: (DatasetID) -> String?

    init(datasetName: @escaping (DatasetID) -> String?) {
        self.datasetName = datasetName
    }

    /// What the entries of a file refer to by number.
    struct Origins {
        var replicas: [ReplicaID] = []
        var authors: [String] = []
        var rows: [(replica: UInt64, author: UInt64)] = []

        init() {}

        /// Those of a block of kind `tables`; none if it cannot be read.
        init(tables: [UInt8]) {
            var reader = FieldReader(tables[...], at: 0)
            _ = try? BlockFields.tables(&reader, &self)
        }

        /// `2: a0000001 by ada`
        func meaning(_ number: UInt64) -> String {
            guard number < UInt64(rows.count) else { return "\(number)" }
            let row = rows[Int(number)]
            guard row.replica < UInt64(replicas.count), row.author < UInt64(authors.count) else {
                return "\(number)"
            }
            let author = authors[Int(row.author)]
            let by = author.isEmpty ? "" : " by \(author)"
            return "\(number): \(replicas[Int(row.replica)].shortDescription)\(by)"
        }
    }

    func meaning(ofDataset number: UInt64) -> String {
        guard number > 0 else { return "0: the store's own" }
        let name = DatasetID(exactly: number).flatMap { datasetName($0) }
        return name.map { "\(number): \($0)" } ?? "\(number)"
    }

    /// A whole block.
    ///
    /// - Parameters:
    ///   - bytes: header and stored bytes, or their beginning where they are too large.
    ///   - isWhole: whether the checksum matches; nil if it was not looked at.
    mutating func part(
        _ bytes: [UInt8], at offset: UInt64, _ header: BlockHeader, _ kind: BlockHeader.Kind,
        number: Int, isWhole: Bool?
    ) -> FilePart {
        let title = "block \(number): \(kind.title)"
        var reader = FieldReader(bytes[...], at: offset)
        takeHeader(&reader, isWhole: isWhole)
        let stored = bytes.dropFirst(BlockHeader.byteCount)
        guard let isWhole else {
            let field = ByteField(
                offset: offset + UInt64(BlockHeader.byteCount), bytes: stored,
                count: UInt64(header.storedCount), group: "", name: "content",
                meaning: Int(header.storedCount) > FileDissection.contentBytesMax
                    ? "too large to be shown whole" : "no file tells the store's secret")
            return FilePart(title: title, fields: reader.fields + [field])
        }
        guard isWhole else {
            reader.takeRest("damaged", "the checksum does not match")
            return FilePart(title: title, fields: reader.fields)
        }
        guard !isLog, header.storedCount < header.mark else {
            takeContent(kind, &reader)
            return FilePart(title: title, fields: reader.fields)
        }
        reader.takeRest("LZ4 block", "\(header.mark) bytes before compression")
        return FilePart(
            title: title, fields: reader.fields,
            content: content(of: stored, rawCount: Int(header.mark), kind))
    }

    private func takeHeader(_ reader: inout FieldReader, isWhole: Bool?) {
        let verdict =
            switch isWhole {
            case true?: "matches"
            case false?: "does not match"
            case nil: "not looked at"
            }
        do throws(Malformed) {
            reader.group = "header"
            try reader.number(8, "checksum") { "\(String($0, radix: 16)): \(verdict)" }
            try reader.number(4, "stored length")
            if isLog {
                try reader.number(4, "durable up to")
            } else {
                try reader.number(4, "raw length")
            }
            try reader.number(4, "file number")
            try reader.number(1, "kind") { number in
                BlockHeader.Kind(rawValue: UInt8(truncatingIfNeeded: number))?.title ?? ""
            }
            try reader.number(1, "reserved")
            try reader.number(2, isLog ? "epoch" : "reserved")
            reader.group = ""
        } catch {
            reader.takeRest("damaged", error.what)
        }
    }

    /// Of a compressed block.
    private mutating func content(
        of stored: ArraySlice<UInt8>, rawCount: Int, _ kind: BlockHeader.Kind
    ) -> [ByteField] {
        guard rawCount <= FileDissection.contentBytesMax else { return [] }
        var raw = [UInt8](repeating: 0, count: rawCount)
        let isWhole = unsafe stored.withUnsafeBytes { source in
            unsafe raw.withUnsafeMutableBytes { target in
                unsafe LZ4Block.decompress(source, into: target)
            }
        }
        guard isWhole else { return [] }
        var reader = FieldReader(raw[...], at: 0)
        takeContent(kind, &reader)
        return reader.fields
    }

    /// Everything that is left; where it cannot be read, the rest has the reason for its meaning.
    private mutating func takeContent(_ kind: BlockHeader.Kind, _ reader: inout FieldReader) {
        do throws(Malformed) {
            switch kind {
            case .operations: try takeItems(&reader)
            case .endOfLog: break
            case .data: try BlockFields.data(&reader, self)
            case .changes: try BlockFields.changes(&reader, self)
            case .tables:
                var made = Origins()
                try BlockFields.tables(&reader, &made)
            case .datasets: try BlockFields.datasets(&reader, self)
            case .collected: try BlockFields.collected(&reader, self)
            case .directory: try BlockFields.directory(&reader)
            case .changeDirectory: try BlockFields.changeDirectory(&reader, self)
            case .indexChecksums: try BlockFields.indexChecksums(&reader)
            case .valueFiles: try BlockFields.valueFiles(&reader)
            case .value: try reader.take(reader.remaining, "value")
            case .manifest: try BlockFields.manifest(&reader)
            case .partOrigin, .partMark, .roster: break
            }
            reader.group = ""
            reader.takeRest("content")
        } catch {
            reader.group = ""
            reader.takeRest("damaged", error.what)
        }
    }
}

extension BlockHeader.Kind {
    /// As the description of the format calls it.
    var title: String {
        switch self {
        case .operations: "operations"
        case .endOfLog: "end of log"
        case .data: "data"
        case .changes: "changes"
        case .tables: "tables"
        case .datasets: "datasets"
        case .collected: "collected"
        case .directory: "directory"
        case .changeDirectory: "change directory"
        case .indexChecksums: "checksums of the hash index"
        case .valueFiles: "value files"
        case .value: "value"
        case .manifest: "manifest"
        case .partOrigin: "origin of a part"
        case .partMark: "mark of a part"
        case .roster: "roster of changes"
        }
    }
}
