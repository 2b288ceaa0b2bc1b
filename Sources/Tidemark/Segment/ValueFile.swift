internal import Synchronization

/// A file of large values, open for reading: immutable, one block a value.
///
/// Segments name it, and hold it open as long as anyone can see them, also when its name is long
/// gone. A value is checked against its checksum each time it is read: a checksum takes less time
/// than the copy that most readers make.
@safe
final class ValueFile: @unchecked Sendable {
    // Unchecked: `map` is a read-only mapping, which `file` holds.

    let number: UInt64
    let path: String
    let fileSize: UInt64
    let file: any StorageFile
    private let identity: StoreIdentity
    private let map: UnsafeRawBufferPointer
    private let damage = Atomic<Bool>(false)
    /// Whoever reads a damaged value says so here.
    private let events: EventDelivery?
    private let room: ValueRoom

    /// - Parameters:
    ///   - fileSize: as the segments say that name it.
    ///   - room: where values are decompressed for a look.
    init(
        number: UInt64, path: String, fileSize: UInt64, identity: StoreIdentity,
        storage: any Storage,
        events: EventDelivery?, room: ValueRoom
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.fileSize = fileSize
        self.identity = identity
        self.events = events
        self.room = room
        let file: any StorageFile
        do {
            file = try storage.openFile(path, .read)
        } catch let error where error.code == .notAStore {
            throw Malformed("a value file that a segment names is missing").error(in: path, at: nil)
        }
        self.file = file
        let found = try file.size()
        guard found == fileSize, found >= UInt64(FileHeader.byteCount) else {
            throw Malformed(
                "the value file has \(found) bytes where its segments say \(fileSize)"
            ).error(in: path, at: found)
        }
        let header = unsafe try Block(count: FileHeader.byteCount) {
            (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: 0)
        }
        _ = try FileHeader(
            header.bytes, expecting: .values, segment: number, identity: identity, path: path)
        unsafe map = try file.mapForReading()
        guard unsafe UInt64(map.count) == fileSize else {
            throw Malformed("the size of the value file changes").error(in: path, at: nil)
        }
        // There may be thousands.
        try file.releaseDescriptor()
    }

    /// Whether a value could not be read when it was to be moved: then the file stays as it is.
    var isDamaged: Bool { damage.load(ordering: .relaxed) }

    func noteDamage() { damage.store(true, ordering: .relaxed) }

    private func damaged(_ what: String, at offset: UInt64) -> StoreError {
        let error = Malformed("a value: \(what)").error(in: path, at: offset)
        events?.tellDamage(error)
        return error
    }

    /// Brings bytes of the file into memory. What the disk cannot read counts as damage.
    private func populate(_ offset: UInt64, _ count: Int) throws(StoreError) {
        do {
            try file.populate(offset: Int(offset), count: count)
        } catch {
            events?.tellDamage(error)
            throw error
        }
    }

    /// The stored bytes of a value, checked.
    private func stored(_ handle: BlockHandle) throws(StoreError) -> ByteView {
        guard handle.offset >= UInt64(FileHeader.byteCount), handle.endOffset <= fileSize else {
            throw damaged("it lies outside of its file", at: handle.offset)
        }
        let count = BlockHeader.byteCount + Int(handle.storedCount)
        try populate(handle.offset, count)
        let base = unsafe map.baseAddress! + Int(handle.offset)
        let header = unsafe BlockHeader(at: base)
        guard header.storedCount == handle.storedCount, header.mark == handle.rawCount,
            header.kind == BlockHeader.Kind.value.rawValue,
            header.segment == UInt32(truncatingIfNeeded: number), header.epoch == 0
        else { throw damaged("another block lies in its place", at: handle.offset) }
        guard
            unsafe BlockHeader.checksum(
                at: base, storedCount: Int(handle.storedCount), identity) == header.checksum
        else { throw damaged("the checksum does not match", at: handle.offset) }
        return unsafe ByteView(
            base: base + BlockHeader.byteCount, count: Int(handle.storedCount))
    }

    /// Hands out a value: where it lies, if it is stored as it is.
    ///
    /// - Throws: `corruption` with the place of the value, `inputOutput`.
    func withValue<Result>(
        _ handle: BlockHandle, _ body: (ByteView) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let stored = try stored(handle)
        guard handle.storedCount < handle.rawCount else { return try body(stored) }
        return unsafe try room.with(byteCount: Int(handle.rawCount)) { (own) throws(StoreError) in
            try unsafe decompress(stored, into: own, handle)
            return try unsafe body(ByteView(UnsafeRawBufferPointer(own)))
        }
    }

    /// A copy of a value, decompressed in the place where it will stay.
    func value(_ handle: BlockHandle) throws(StoreError) -> [UInt8] {
        let stored = try stored(handle)
        guard handle.storedCount < handle.rawCount else { return stored.array }
        var failure: StoreError?
        let count = Int(handle.rawCount)
        let value = unsafe [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
            do throws(StoreError) {
                try unsafe decompress(stored, into: UnsafeMutableRawBufferPointer(target), handle)
                initialized = count
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return value
    }

    private func decompress(
        _ stored: ByteView, into target: UnsafeMutableRawBufferPointer, _ handle: BlockHandle
    ) throws(StoreError) {
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: target[..<Int(handle.rawCount)])
        guard unsafe LZ4Block.decompress(stored.buffer, into: room) else {
            throw damaged(
                "it does not decompress to \(handle.rawCount) bytes", at: handle.offset)
        }
    }

    /// Lets go of the memory that reading has taken.
    func releaseMemory() { file.release(offset: 0, count: Int(fileSize)) }

    /// Reads a value and what fills up to the next block, for verification.
    func check(_ handle: BlockHandle) throws(StoreError) {
        try withValue(handle) { _ in }
        let end = min((handle.endOffset + 7) & ~7, fileSize)
        try populate(handle.endOffset, Int(end - handle.endOffset))
        let padding = unsafe UnsafeRawBufferPointer(
            rebasing: map[Int(handle.endOffset)..<Int(end)])
        guard unsafe padding.allSatisfy({ $0 == 0 }) else {
            throw damaged("bytes that belong to nothing follow it", at: handle.endOffset)
        }
    }
}

/// The value files that are open, so that segments that name the same one share it. Holds none.
final class ValueFiles: Sendable {
    private struct Reference {
        weak var file: ValueFile?
    }

    private let storage: any Storage
    private let identity: StoreIdentity
    private let events: EventDelivery?
    private let room = ValueRoom()
    private let references = Mutex<[UInt64: Reference]>([:])

    init(identity: StoreIdentity, storage: any Storage, events: EventDelivery? = nil) {
        self.identity = identity
        self.storage = storage
        self.events = events
    }

    /// - Throws: `corruption` if the file is missing, has another size or another header.
    func file(
        _ number: UInt64, at path: String, fileSize: UInt64
    ) throws(StoreError) -> ValueFile {
        if let known = references.withLock({ $0[number]?.file }), known.fileSize == fileSize {
            return known
        }
        let file = try ValueFile(
            number: number, path: path, fileSize: fileSize, identity: identity, storage: storage,
            events: events, room: room)
        return references.withLock { references in
            // What is gone is swept out now and then.
            if references.count.nonzeroBitCount == 1 {
                references = references.filter { $0.value.file != nil }
            }
            references[number] = Reference(file: file)
            return file
        }
    }
}
