internal import Glibc
internal import Synchronization

/// Files in memory, for fuzzing: nothing of an input ever reaches a disk, and clock and randomness
/// are the same in each run.
///
/// What is mapped for reading is allocated to the byte, so that the address sanitizer sees a read
/// just behind the end of a file.
final class MemoryStorage: Storage {
    private struct State {
        var files: [String: MemoryInode] = [:]
        var clock: UInt64 = 1_790_000_000_000
        var random: UInt64 = 1
    }

    private let state = Mutex(State())

    init(_ files: [String: [UInt8]] = [:]) {
        state.withLock { state in
            for (path, bytes) in files { state.files[path] = MemoryInode(bytes) }
        }
    }

    /// Every file as it is now.
    var files: [String: [UInt8]] {
        state.withLock { state in state.files.mapValues { $0.contents } }
    }

    func createDirectory(_ path: String) throws(StoreError) {}

    func listDirectory(_ path: String) throws(StoreError) -> [String] {
        state.withLock { state in
            state.files.keys.filter { $0.hasPrefix(path + "/") }
                .map { String($0.dropFirst(path.count + 1)) }
        }
    }

    func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile {
        let inode = state.withLock { state -> MemoryInode? in
            if mode == .create { state.files[path] = MemoryInode([]) }
            return state.files[path]
        }
        guard let inode else { throw StoreError(.notAStore, "there is no file \(path)") }
        return MemoryFile(path, inode)
    }

    func rename(_ source: String, to target: String) throws(StoreError) {
        state.withLock { state in
            state.files[target] = state.files.removeValue(forKey: source)
        }
    }

    func link(_ source: String, to target: String) throws(StoreError) -> Bool {
        state.withLock { state in
            guard let inode = state.files[source] else { return false }
            state.files[target] = inode
            return true
        }
    }

    func remove(_ path: String) throws(StoreError) {
        state.withLock { state in state.files[path] = nil }
    }

    func syncDirectory(_ path: String) throws(StoreError) {}

    func lock(_ directory: String) throws(StoreError) -> any StorageLock { MemoryLock() }

    func wallClockMilliseconds() -> UInt64 {
        state.withLock { state in
            state.clock += 1
            return state.clock
        }
    }

    func randomUInt64() -> UInt64 {
        state.withLock { state in
            state.random &*= 6_364_136_223_846_793_005
            state.random &+= 1_442_695_040_888_963_407
            return state.random
        }
    }
}

/// The bytes of one file.
@safe
final class MemoryInode: @unchecked Sendable {
    // Unchecked: every member is used under `lock`; a mapping, once made, stays where it is.
    private let lock = Mutex(())
    private var bytes: [UInt8]
    private var mapping: UnsafeMutableRawBufferPointer?
    private var size: Int

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        size = bytes.count
        unsafe mapping = nil
    }

    deinit {
        if let mapping = unsafe mapping { unsafe munmap(mapping.baseAddress!, mapping.count) }
    }

    var count: Int { lock.withLock { _ in size } }

    var contents: [UInt8] {
        lock.withLock { _ in
            if let mapping = unsafe mapping { return unsafe Array(mapping.prefix(size)) }
            return bytes
        }
    }

    /// False if the file ends before.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Bool {
        lock.withLock { _ in
            guard offset <= UInt64(size), buffer.count <= size - Int(offset) else { return false }
            let range = Int(offset)..<(Int(offset) + buffer.count)
            if let mapping = unsafe mapping {
                unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: mapping[range]))
            } else {
                unsafe buffer.copyBytes(from: bytes[range])
            }
            return true
        }
    }

    func write(_ source: UnsafeRawBufferPointer, at offset: Int) {
        resize(to: max(count, offset + source.count))
        lock.withLock { _ in
            if let mapping = unsafe mapping {
                let target = unsafe mapping[offset..<(offset + source.count)]
                unsafe UnsafeMutableRawBufferPointer(rebasing: target).copyMemory(from: source)
            } else {
                bytes.replaceSubrange(offset..<(offset + source.count), with: unsafe Array(source))
            }
        }
    }

    func resize(to newSize: Int) {
        lock.withLock { _ in
            if let mapping = unsafe mapping {
                precondition(unsafe newSize <= mapping.count, "a mapped file cannot grow further")
                if newSize < size {
                    let tail = unsafe UnsafeMutableRawBufferPointer(
                        rebasing: mapping[newSize..<size])
                    unsafe tail.initializeMemory(as: UInt8.self, repeating: 0)
                }
            } else if newSize < bytes.count {
                bytes.removeLast(bytes.count - newSize)
            } else {
                bytes += [UInt8](repeating: 0, count: newSize - bytes.count)
            }
            size = newSize
        }
    }

    func map(_ mappedSize: Int) -> UnsafeMutableRawBufferPointer {
        lock.withLock { _ in
            if let mapping = unsafe mapping, unsafe mapping.count >= mappedSize {
                return unsafe UnsafeMutableRawBufferPointer(rebasing: mapping[..<mappedSize])
            }
            let address = unsafe mmap(
                nil, mappedSize, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
            precondition(unsafe address != MAP_FAILED, "no memory for a mapping")
            let region = unsafe UnsafeMutableRawBufferPointer(start: address, count: mappedSize)
            unsafe region.copyBytes(from: bytes)
            bytes = []
            unsafe mapping = region
            return unsafe region
        }
    }
}

@safe
private final class MemoryFile: StorageFile, @unchecked Sendable {
    // Unchecked: the copy is made once, before the file is shared.
    let path: String
    private let inode: MemoryInode
    private var copy: UnsafeMutableRawBufferPointer?

    init(_ path: String, _ inode: MemoryInode) {
        self.path = path
        self.inode = inode
        unsafe copy = nil
    }

    deinit {
        unsafe copy?.deallocate()
    }

    func size() throws(StoreError) -> UInt64 { UInt64(inode.count) }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(StoreError) {
        guard unsafe inode.read(into: buffer, at: offset) else {
            throw StoreError(.corruption, "the file ends early")
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(StoreError) {
        unsafe inode.write(bytes, at: Int(offset))
    }

    func sync() throws(StoreError) {}

    func truncate(to size: UInt64) throws(StoreError) { inode.resize(to: Int(size)) }

    func map(size: Int, reserving: Int) throws(StoreError) -> UnsafeMutableRawBufferPointer {
        try reserve(reserving)
        return unsafe inode.map(size)
    }

    func reserve(_ size: Int) throws(StoreError) {
        if size > inode.count { inode.resize(to: size) }
    }

    func mapForReading() throws(StoreError) -> UnsafeRawBufferPointer {
        let contents = inode.contents
        let exact = UnsafeMutableRawBufferPointer.allocate(
            byteCount: contents.count, alignment: 64)
        unsafe exact.copyBytes(from: contents)
        unsafe copy = exact
        return unsafe UnsafeRawBufferPointer(exact)
    }

    func populate(offset: Int, count: Int) throws(StoreError) {
        precondition(
            offset >= 0 && count >= 0 && offset + count <= inode.count,
            "bytes \(offset) + \(count) of a file of \(inode.count)")
    }

    func syncMapping(offset: Int, count: Int) throws(StoreError) {}
}

private final class MemoryLock: StorageLock {}
