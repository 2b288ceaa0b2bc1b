/// Walks over a file of a store and names each byte of it, part by part.
///
/// Takes memory for one block at a time, and reads nothing before it is asked for, so that the
/// first parts of a large file come at once. A block whose checksum does not match is shown and
/// not taken apart. Not for two threads at once.
package final class FileDissection {
    /// Blocks with more stored bytes than this are named as a whole, and only their beginning is
    /// read; those that have more before compression are not decompressed.
    static let contentBytesMax = 16 << 20
    /// Bytes that are read of what is too large.
    static let beginningByteCount = 4_096

    let file: any StorageFile
    let size: UInt64
    private let storage: any Storage
    private var offset: UInt64 = 0
    private var stage = Stage.start
    private var decoder: BlockDecoder
    /// As the header says; nil if that is damaged.
    private var identity: StoreIdentity?
    /// Of a sealed segment, if it can be read.
    private var footer: SegmentFooter?
    private var blockNumber = 0

    private enum Stage {
        case start
        case blocks
        case index
        case ended
    }

    /// - Parameters:
    ///   - path: of a log, a sealed segment or a value file, or any other file with blocks.
    ///   - datasetName: the name of the dataset whose records have a number.
    init(
        path: String, storage: any Storage, datasetName: @escaping (DatasetID) -> String?
    ) throws(StoreError) {
        self.storage = storage
        file = try storage.openFile(path, .read)
        size = try file.size()
        decoder = BlockDecoder(datasetName: datasetName)
    }

    /// Goes on at the block that begins at an offset, if the file has been opened just now; nothing
    /// happens if none can begin there.
    package func skip(to offset: UInt64) throws(StoreError) {
        guard case .start = stage, offset >= UInt64(FileHeader.byteCount), offset % 8 == 0,
            offset < size
        else { return }
        // The header, for what the blocks need of it.
        _ = try next()
        self.offset = offset
    }

    /// The next part; nil at the end of the file.
    ///
    /// - Throws: `inputOutput` where the file cannot be read. Damage is shown, not thrown.
    package func next() throws(StoreError) -> FilePart? {
        switch stage {
        case .start:
            stage = .blocks
            return try header()
        case .blocks:
            return try inBlocks()
        case .index:
            return try bucket()
        case .ended:
            return nil
        }
    }

    // MARK: - Header and footer

    private func header() throws(StoreError) -> FilePart {
        let count = min(size, UInt64(FileHeader.byteCount))
        let bytes = try file.bytes(Int(count), at: 0)
        offset = count
        identity = unsafe bytes.withUnsafeBytes {
            FileHeader.identity(in: unsafe ByteView($0))
        }
        if identity == nil {
            // Of another file of the store, if there is one.
            identity = try? StoreIdentity.found(
                inDirectory: FileName.parent(of: file.path), storage: storage)
        }
        var reader = FieldReader(bytes[...], at: 0)
        let kind = FileFields.header(&reader, decoder: &decoder)
        if kind == .sealed { try readFooter() }
        return FilePart(title: "file header", fields: reader.fields)
    }

    /// What says where the parts of a segment are, and what its entries refer to.
    private func readFooter() throws(StoreError) {
        guard size >= UInt64(FileHeader.byteCount + SegmentFooter.byteCount) else { return }
        let start = size - UInt64(SegmentFooter.byteCount)
        let bytes = try file.bytes(SegmentFooter.byteCount, at: start)
        guard let identity else { return }
        footer = unsafe bytes.withUnsafeBytes { buffer in
            try? SegmentFooter(
                unsafe ByteView(buffer), segment: decoder.fileNumber, fileSize: size, identity)
        }
        guard let footer,
            let block = try? file.readBlock(
                footer.tables, kind: .tables, segment: footer.segment, identity)
        else { return }
        decoder.origins = BlockDecoder.Origins(tables: block.bytes.array)
    }

    private func footerPart() throws(StoreError) -> FilePart {
        let bytes = try file.bytes(Int(size - offset), at: offset)
        var reader = FieldReader(bytes[...], at: offset)
        FileFields.footer(&reader)
        offset = size
        stage = .ended
        return FilePart(title: "footer", fields: reader.fields)
    }

    // MARK: - Blocks

    private func inBlocks() throws(StoreError) -> FilePart? {
        guard offset < size else {
            stage = .ended
            return nil
        }
        if let footer {
            if offset == footer.indexOffset {
                stage = .index
                blockNumber = 0
                return try bucket()
            }
            if offset + UInt64(SegmentFooter.byteCount) >= size { return try footerPart() }
        }
        guard offset % 8 == 0 else {
            return try fillers(upTo: min(size, (offset + 7) & ~7))
        }
        if let block = try block() { return block }
        return try unknown()
    }

    /// Where the next part must begin at the latest.
    private var boundary: UInt64 {
        guard let footer else { return size }
        let end = size - UInt64(SegmentFooter.byteCount)
        return offset < footer.indexOffset ? footer.indexOffset : end
    }

    /// The block that begins here; nil if none does.
    private func block() throws(StoreError) -> FilePart? {
        guard offset + UInt64(BlockHeader.byteCount) <= boundary else { return nil }
        let head = try file.bytes(BlockHeader.byteCount, at: offset)
        let header = unsafe head.withUnsafeBytes { unsafe BlockHeader(at: $0.baseAddress!) }
        let end = offset + UInt64(BlockHeader.byteCount) + UInt64(header.storedCount)
        guard let kind = BlockHeader.Kind(rawValue: header.kind), end <= boundary,
            header.segment == UInt32(truncatingIfNeeded: decoder.fileNumber)
        else { return nil }
        let start = offset
        offset = end
        let isLarge = Int(header.storedCount) > Self.contentBytesMax
        let count = isLarge ? Self.beginningByteCount : Int(header.storedCount)
        let bytes = try file.bytes(BlockHeader.byteCount + count, at: start)
        var isWhole: Bool?
        if !isLarge, let identity {
            let checksum = unsafe bytes.withUnsafeBytes { buffer in
                unsafe BlockHeader.checksum(
                    at: buffer.baseAddress!, storedCount: count, identity)
            }
            isWhole = checksum == header.checksum
        }
        // Behind the end of a log lies what a crash or an earlier use has left.
        if isWhole != true, decoder.isLog, !isLarge {
            offset = start
            return nil
        }
        let number = blockNumber
        blockNumber += 1
        return decoder.part(bytes, at: start, header, kind, number: number, isWhole: isWhole)
    }

    /// What fills up to the next block.
    private func fillers(upTo end: UInt64) throws(StoreError) -> FilePart {
        let bytes = try file.bytes(Int(end - offset), at: offset)
        var reader = FieldReader(bytes[...], at: offset)
        reader.takeRest("filler", "up to a multiple of 8")
        offset = end
        return FilePart(title: "filler", fields: reader.fields)
    }

    /// What no block begins with: up to the next part that has a fixed place.
    private func unknown() throws(StoreError) -> FilePart {
        let start = offset
        let end = boundary
        let isFiller = footer != nil && end - start < UInt64(HashIndex.bucketByteCount)
        let count = end - start
        let bytes = try file.bytes(
            Int(min(count, UInt64(Self.beginningByteCount))), at: start)
        offset = end
        let isZero = bytes.allSatisfy { $0 == 0 }
        let meaning =
            switch (isFiller && isZero, decoder.isLog) {
            case (true, _): "up to a multiple of 64"
            case (false, true): isZero ? "in reserve" : "behind the end of the log"
            case (false, false): "no block begins here: damaged"
            }
        let field = ByteField(
            offset: start, bytes: bytes[...], count: count, group: "",
            name: isFiller && isZero ? "filler" : decoder.isLog ? "unused" : "damaged",
            meaning: meaning)
        return FilePart(title: field.name, fields: [field])
    }

    // MARK: - Hash index

    private func bucket() throws(StoreError) -> FilePart? {
        guard let footer else { return nil }
        let bytes = try file.bytes(HashIndex.bucketByteCount, at: offset)
        var reader = FieldReader(bytes[...], at: offset)
        FileFields.bucket(&reader)
        let title = "bucket \(blockNumber) of the hash index"
        blockNumber += 1
        offset += UInt64(HashIndex.bucketByteCount)
        if UInt64(blockNumber) >= footer.bucketCount { stage = .blocks }
        return FilePart(title: title, fields: reader.fields)
    }
}

extension Store {
    /// Names each byte of one of the store's files: a log, a sealed segment or a value file.
    ///
    /// - Parameter file: the name within the store's directory.
    /// - Throws: `notAStore` if there is no such file; `inputOutput`.
    package func dissection(ofFile file: String) throws(StoreError) -> FileDissection {
        let engine = engine
        return try FileDissection(
            path: engine.filePath(file), storage: engine.storage
        ) { id in
            // A name that cannot be read is one that is not shown.
            try? engine.withState(numbered: id) { $1?.name }
        }
    }

    /// The same for a store that is too damaged to be opened: datasets have numbers then, no names.
    package static func dissection(
        ofFile file: String, in directory: String
    ) throws(StoreError) -> FileDissection {
        try FileDissection(path: "\(directory)/\(file)", storage: SystemStorage()) { _ in nil }
    }
}
