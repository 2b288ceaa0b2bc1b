import Glibc
import Synchronization
import Tidemark

/// An open file of a ``SimulatedStorage``.
final class SimulatedFile: StorageFile {
    let path: String
    private let inode: SimulatedInode
    private let storage: SimulatedStorage
    /// How many mappings end with this object.
    private let mappingCount = Mutex(0)

    init(path: String, inode: SimulatedInode, storage: SimulatedStorage) {
        self.path = path
        self.inode = inode
        self.storage = storage
    }

    deinit {
        storage.state.withLock { _ in
            inode.unmap(mappingCount.withLock { $0 })
        }
    }

    func size() throws(StoreError) -> UInt64 {
        try storage.call(.size, path) { _ throws(StoreError) in UInt64(inode.size) }
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(StoreError) {
        try storage.call(.read, path, offset: offset, count: buffer.count) {
            _ throws(StoreError) in
            guard let start = Int(exactly: offset), start <= inode.size,
                buffer.count <= inode.size - start
            else {
                throw StoreError(
                    .corruption, "the file ends before byte \(offset) + \(buffer.count)",
                    location: StoreError.Location(path: path, offset: offset))
            }
            try checkReadable(start, buffer.count)
            unsafe inode.read(into: buffer, at: start)
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(StoreError) {
        let half = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count / 2)])
        try storage.call(
            .write, path, offset: offset, count: bytes.count,
            short: { _ in unsafe inode.write(half, at: Int(offset)) }
        ) { state throws(StoreError) in
            try state.reserve(Int(offset) + bytes.count, for: inode, .write, path)
            unsafe inode.write(bytes, at: Int(offset))
        }
    }

    func sync() throws(StoreError) {
        try storage.call(.sync, path) { _ throws(StoreError) in inode.sync() }
    }

    func truncate(to size: UInt64) throws(StoreError) {
        try storage.call(.truncate, path, offset: size) { state throws(StoreError) in
            try state.reserve(Int(size), for: inode, .truncate, path)
            inode.truncate(to: Int(size))
        }
    }

    func map(size: Int, reserving: Int) throws(StoreError) -> UnsafeMutableRawBufferPointer {
        // The address leaves as a number, because a pointer cannot leave the lock's closure. The
        // memory lives as long as the inode, which this object holds.
        let address = try storage.call(.map, path, count: reserving) { state throws(StoreError) in
            try state.reserve(reserving, for: inode, .map, path)
            mappingCount.withLock { $0 += 1 }
            return UInt(
                bitPattern: unsafe inode.map(size: size, reserving: reserving).baseAddress)
        }
        return unsafe UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(bitPattern: address), count: size)
    }

    func reserve(_ size: Int) throws(StoreError) {
        try storage.call(.map, path, count: size) { state throws(StoreError) in
            try state.reserve(size, for: inode, .map, path)
            inode.reserve(size)
        }
    }

    func mapForReading() throws(StoreError) -> UnsafeRawBufferPointer {
        let (address, size) = try storage.call(.map, path) { _ throws(StoreError) in
            mappingCount.withLock { $0 += 1 }
            let size = inode.size
            return (
                UInt(bitPattern: unsafe inode.map(size: size, reserving: size).baseAddress), size
            )
        }
        return unsafe UnsafeRawBufferPointer(
            start: UnsafeRawPointer(bitPattern: address), count: size)
    }

    func populate(offset: Int, count: Int) throws(StoreError) {
        try storage.call(.read, path, offset: UInt64(offset), count: count) {
            _ throws(StoreError) in
            try checkReadable(offset, count)
        }
    }

    func mayHaveLostWrites() -> Bool {
        storage.state.withLock { _ in inode.hasForgotten }
    }

    private func checkReadable(_ offset: Int, _ count: Int) throws(StoreError) {
        guard let page = inode.unreadableOffset(in: offset..<(offset + count)) else { return }
        throw StorageCall.failure(.read, path, EIO, at: UInt64(page))
    }

    func syncMapping(offset: Int, count: Int) throws(StoreError) {
        try storage.call(.syncMapping, path, offset: UInt64(offset), count: count) {
            _ throws(StoreError) in inode.sync(offset..<(offset + count))
        }
    }
}
