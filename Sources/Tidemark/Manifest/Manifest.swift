/// Which files make up the store, and the store's own state as of the oldest log among them.
///
/// One file, replaced as a whole: written beside, synced, renamed, directory synced. A crash
/// leaves the old one or the new one.
struct Manifest: Hashable {
    static let fileName = "MANIFEST"
    static let temporaryName = "MANIFEST.new"

    struct Segment: Hashable {
        var number: UInt64
        var fileSize: UInt64
        /// The number of the first segment of its run: those of one run stand next to each other,
        /// in the order of their entries.
        var run: UInt64
    }

    var replicaID: ReplicaID
    /// In the header of every file, so that none of another store passes for one of this, and
    /// nothing that a value holds for a block.
    let identity: StoreIdentity
    /// Ids the store had before; what it wrote under them is still its own.
    var formerReplicaIDs: [ReplicaID] = []
    /// Those of them that were given up when the files turned out to be copies, before anything was
    /// written: no dot of theirs names two writes.
    var closedReplicaIDs: [ReplicaID] = []
    /// Logs below this number are sealed; what is left of them may be removed.
    var oldestLog: UInt64 = 0
    /// No file of the store has this number or a greater one, apart from logs.
    var nextNumber: UInt64 = 1
    var nextDataset: DatasetID = 1
    /// No time that the store gave out, up to the oldest log, is greater.
    var clock: UInt64 = 0
    /// No record of the sealed segments expires before this, in milliseconds since 1970; `.max` if
    /// none does. So a store whose records do not expire never looks for any that have.
    var expiresFrom = UInt64.max
    /// The log that was active when the store was last closed, how far it was durable then, and
    /// the size of its file: what is missing of that later is damage.
    var closedLog: UInt64 = 0
    var closedAt: UInt64 = 0
    var closedSize: UInt64 = 0
    /// Newest run first.
    var segments: [Segment] = []

    // MARK: - As bytes

    private static let file = OneBlockFile(
        kind: .manifest, blockKind: .manifest, title: "manifest",
        bytesMax: Limits.manifestBytesMax)

    func encoded(at milliseconds: UInt64) -> [UInt8] {
        Self.file.bytes(content, identity, at: milliseconds)
    }

    /// The fields in order as varints, ids as 16 bytes, lists with their count before them. Of a
    /// store whose files were never copied nothing stands behind the segments.
    var content: [UInt8] {
        var body = ByteWriter()
        body.append(replicaID)
        body.append(varint: formerReplicaIDs.count)
        for id in formerReplicaIDs {
            body.append(id)
        }
        body.append(varint: oldestLog)
        body.append(varint: nextNumber)
        body.append(varint: UInt64(nextDataset))
        body.append(varint: clock)
        body.append(varint: expiresFrom &+ 1)
        body.append(varint: closedLog)
        body.append(varint: closedAt)
        body.append(varint: closedSize)
        body.append(varint: segments.count)
        for segment in segments {
            body.append(varint: segment.number)
            body.append(varint: segment.fileSize)
            body.append(varint: segment.run)
        }
        if !closedReplicaIDs.isEmpty {
            body.append(varint: closedReplicaIDs.count)
            for id in closedReplicaIDs {
                body.append(id)
            }
        }
        return body.bytes
    }

    private init(decoding bytes: ByteView, identity: StoreIdentity) throws(Malformed) {
        self.identity = identity
        var reader = ByteReader(bytes)
        replicaID = try reader.replicaID()
        for _ in 0..<(try reader.count(eachAtLeast: 16)) {
            formerReplicaIDs.append(try reader.replicaID())
        }
        oldestLog = try reader.varintCount()
        nextNumber = try reader.varintCount()
        nextDataset = try reader.datasetID()
        clock = try reader.varint()
        expiresFrom = try reader.varint() &- 1
        closedLog = try reader.varintCount()
        closedAt = try reader.varint()
        closedSize = try reader.varint()
        for _ in 0..<(try reader.count(eachAtLeast: 3)) {
            segments.append(
                Segment(
                    number: try reader.varintCount(), fileSize: try reader.varint(),
                    run: try reader.varint()))
        }
        if !reader.isAtEnd {
            for _ in 0..<(try reader.count(eachAtLeast: 16)) {
                closedReplicaIDs.append(try reader.replicaID())
            }
        }
        guard reader.isAtEnd else { throw Malformed("the manifest is followed by more bytes") }
        // Or a new segment would take the place of one that is there.
        guard Set(segments.map(\.number)).count == segments.count,
            segments.allSatisfy({ $0.number < nextNumber })
        else { throw Malformed("a segment stands twice in the manifest, or has a later number") }
    }

    init(replicaID: ReplicaID, identity: StoreIdentity) {
        self.replicaID = replicaID
        self.identity = identity
    }

    // MARK: - As a file

    /// - Throws: `notAStore` if there is none, `formatTooNew`, `corruption`.
    static func read(in directory: String, storage: any Storage) throws(StoreError) -> Manifest {
        try file.read("\(directory)/\(fileName)", nil, storage) {
            (content, identity) throws(Malformed) in
            try Manifest(decoding: content, identity: identity)
        }
    }

    /// Replaces the manifest; durable when it returns.
    ///
    /// - Parameter ownership: of the store's writer; nil where there is no store yet.
    /// - Throws: `writerStopped` if the directory is not the writer's any more; `diskFull`,
    ///   `inputOutput`.
    func write(
        in directory: String, storage: any Storage, ownership: StoreOwnership? = nil
    ) throws(StoreError) {
        let temporary = "\(directory)/\(Self.temporaryName)"
        let file = try storage.openFile(temporary, .create)
        let bytes = encoded(at: storage.wallClockMilliseconds())
        try bytes.withBytes { (view) throws(StoreError) in
            try unsafe file.write(view.buffer, at: 0)
        }
        try file.sync()
        let rename = { () throws(StoreError) in
            try storage.rename(temporary, to: "\(directory)/\(Self.fileName)")
        }
        if let ownership {
            try ownership.replaceManifest(by: file, rename)
        } else {
            try rename()
        }
        try storage.syncDirectory(directory)
    }
}

extension Manifest {
    /// Holds a log, by its header, against what is known of it here.
    /// - Throws: `corruption` if it is of another store, or of a size that it cannot have.
    func check(_ log: LogSegment, _ header: FileHeader) throws(StoreError) {
        guard header.identity == identity else {
            throw Malformed("the log is of another store").error(in: log.path, at: 48)
        }
        if let damage = damage(ofSizeOf: log, header) { throw damage }
    }

    /// What is wrong with the size of a log's file; nil if it can have that size.
    func damage(ofSizeOf log: LogSegment, _ header: FileHeader) -> StoreError? {
        let sizeMin = log.number == closedLog ? closedSize : 0
        guard UInt64(log.reserved) >= sizeMin, log.reserved <= Int(header.capacity) else {
            return Malformed(
                "the log has \(log.reserved) bytes where \(sizeMin) to \(header.capacity) belong"
            ).error(in: log.path, at: UInt64(log.reserved))
        }
        return nil
    }
}
