import Glibc
import Tidemark

/// The bytes of one simulated file, live and durable.
///
/// Whoever calls holds the lock of the storage, which is what makes `@unchecked Sendable` right;
/// only stores into a mapping go past it, as they go past the kernel.
@safe
final class SimulatedInode: @unchecked Sendable {
    static let pageBytes = 4_096
    static let sectorBytes = 512

    /// The live bytes; zero from `size` on. Stays where it is once it is mapped.
    private var memory: UnsafeMutableRawBufferPointer
    private(set) var size: Int
    /// The durable bytes; the count is the durable size.
    private var durable: [UInt8]
    private var mappingCount = 0
    /// Pages that the disk cannot read.
    private var spoiledPages: Set<Int> = []
    /// Whether pages were let go that were not durable.
    private(set) var hasForgotten = false

    let place: FilePlace

    /// A file whose bytes are both live and durable.
    init(_ bytes: [UInt8] = [], at place: FilePlace) {
        self.place = place
        unsafe memory = .allocate(byteCount: max(bytes.count, 1), alignment: Self.pageBytes)
        size = bytes.count
        durable = bytes
        unsafe memory.zero()
        unsafe bytes.withUnsafeBytes { unsafe memory.copyMemory(from: $0) }
    }

    deinit {
        unsafe memory.deallocate()
    }

    var liveBytes: [UInt8] {
        // The library writes its length into the one empty array that all threads share.
        guard size > 0 else { return [] }
        return unsafe [UInt8](unsafeUninitializedCapacity: size) { bytes, count in
            unsafe UnsafeMutableRawBufferPointer(bytes).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: memory[..<size]))
            count = size
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) {
        unsafe buffer.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: memory[offset..<(offset + buffer.count)]))
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        setSize(max(size, offset + bytes.count))
        unsafe UnsafeMutableRawBufferPointer(rebasing: memory[offset...]).copyMemory(from: bytes)
    }

    func truncate(to newSize: Int) {
        setSize(newSize)
    }

    func map(size mappedSize: Int, reserving: Int) -> UnsafeMutableRawBufferPointer {
        makeRoom(for: mappedSize)
        setSize(max(size, reserving))
        mappingCount += 1
        return unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<mappedSize])
    }

    func reserve(_ newSize: Int) {
        setSize(max(size, newSize))
    }

    func unmap(_ count: Int) {
        mappingCount -= count
    }

    // MARK: Bad sectors

    /// Makes the pages of a range unreadable. Whoever looks at them in a mapping all the same meets
    /// garbage where a process would meet a signal.
    func spoil(_ range: Range<Int>) {
        for page in (range.lowerBound / Self.pageBytes)..<pageCount(of: range.upperBound)
        where spoiledPages.insert(page).inserted {
            let start = page * Self.pageBytes
            for index in start..<min(start + Self.pageBytes, size) { unsafe memory[index] ^= 0xA5 }
        }
    }

    /// Where the first page begins that keeps a range from being read; nil if it can be read.
    func unreadableOffset(in range: Range<Int>) -> Int? {
        guard !spoiledPages.isEmpty, !range.isEmpty else { return nil }
        let pages = (range.lowerBound / Self.pageBytes)..<pageCount(of: range.upperBound)
        return pages.first(where: spoiledPages.contains).map { $0 * Self.pageBytes }
    }

    // MARK: Durability

    func sync() {
        durable = liveBytes
    }

    func sync(_ range: Range<Int>) {
        for page in (range.lowerBound / Self.pageBytes)..<pageCount(of: range.upperBound) {
            writeBack(page)
        }
    }

    func writeBackSomePages(using random: inout SeededGenerator) {
        for page in 0..<pageCount(of: size) where !isDurable(page) && random.oneIn(2) {
            writeBack(page)
        }
    }

    /// What the kernel may do with pages that the disk would not take: they are let go, and the
    /// next look reads what is durable.
    func forgetUndurablePages() {
        hasForgotten = true
        for page in 0..<pageCount(of: size) where !isDurable(page) {
            let start = page * Self.pageBytes
            let end = min(start + Self.pageBytes, size)
            unsafe UnsafeMutableRawBufferPointer(rebasing: memory[start..<end]).zero()
            let known = start..<max(start, min(end, durable.count))
            unsafe durable.withUnsafeBytes {
                unsafe UnsafeMutableRawBufferPointer(rebasing: memory[known]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[known]))
            }
        }
    }

    /// What is left of the file if the power fails now.
    func afterPowerLoss(
        _ survival: Survival, using random: inout SeededGenerator
    ) -> SimulatedInode {
        let left = survivor(survival, using: &random)
        left.spoiledPages = spoiledPages
        return left
    }

    /// The same file once more, with as much of it durable.
    ///
    /// - Parameter other: where a copy of it lies that somebody made.
    func copy(at other: FilePlace? = nil) -> SimulatedInode {
        let copy = SimulatedInode(liveBytes, at: other ?? place)
        copy.durable = durable
        copy.spoiledPages = spoiledPages
        return copy
    }

    private func survivor(
        _ survival: Survival, using random: inout SeededGenerator
    ) -> SimulatedInode {
        switch survival {
        case .nothing: return SimulatedInode(durable, at: place)
        case .everything: return SimulatedInode(liveBytes, at: place)
        case .chance(let percent):
            var bytes = durable
            let survivingSize = random.below(100) < percent ? size : durable.count
            bytes.resize(to: survivingSize)
            for page in 0..<pageCount(of: min(size, survivingSize)) where !isDurable(page) {
                guard random.below(100) < percent else { continue }
                // Now and then a page is torn: its first sectors are new and the rest are old.
                let sectors = Self.pageBytes / Self.sectorBytes
                let written = random.oneIn(8) ? random.below(sectors) : sectors
                let start = page * Self.pageBytes
                let end = min(start + written * Self.sectorBytes, size, survivingSize)
                if start < end { unsafe bytes.replace(start..<end, from: memory) }
            }
            return SimulatedInode(bytes, at: place)
        }
    }

    private func writeBack(_ page: Int) {
        let start = page * Self.pageBytes
        let end = min(start + Self.pageBytes, size)
        guard start < end else { return }
        if durable.count < end { durable.resize(to: end) }
        unsafe durable.replace(start..<end, from: memory)
    }

    private func isDurable(_ page: Int) -> Bool {
        let start = page * Self.pageBytes
        let end = min(start + Self.pageBytes, size)
        guard end <= durable.count else { return false }
        return unsafe durable.withUnsafeBytes { durable in
            guard let left = durable.baseAddress, let right = unsafe memory.baseAddress else {
                return true
            }
            return unsafe memcmp(left + start, right + start, end - start) == 0
        }
    }

    private func pageCount(of bytes: Int) -> Int {
        (bytes + Self.pageBytes - 1) / Self.pageBytes
    }

    private func makeRoom(for bytes: Int) {
        guard unsafe bytes > memory.count else { return }
        precondition(mappingCount == 0, "the simulation cannot move a mapping to make room")
        let wider = unsafe UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(bytes, memory.count * 2), alignment: Self.pageBytes)
        unsafe wider.zero()
        unsafe wider.copyMemory(from: UnsafeRawBufferPointer(memory))
        unsafe memory.deallocate()
        unsafe memory = wider
    }

    private func setSize(_ newSize: Int) {
        makeRoom(for: newSize)
        if newSize < size {
            unsafe UnsafeMutableRawBufferPointer(rebasing: memory[newSize..<size]).zero()
        }
        size = newSize
    }
}

// Memory is filled and copied by calls of the C library: without the optimiser, as under the
// sanitizers, the generic ways of the standard library go byte by byte, which was most of the time
// of tests that cut the power.

extension UnsafeMutableRawBufferPointer {
    fileprivate func zero() {
        guard let baseAddress else { return }
        unsafe memset(baseAddress, 0, count)
    }
}

extension [UInt8] {
    /// Cuts the end off, or adds zeros.
    fileprivate mutating func resize(to newCount: Int) {
        self = unsafe [UInt8](unsafeUninitializedCapacity: newCount) { bytes, initialized in
            let kept = Swift.min(count, newCount)
            let whole = UnsafeMutableRawBufferPointer(bytes)
            unsafe self.withUnsafeBytes {
                unsafe whole.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<kept]))
            }
            unsafe UnsafeMutableRawBufferPointer(rebasing: whole[kept...]).zero()
            initialized = newCount
        }
    }

    fileprivate mutating func replace(
        _ range: Range<Int>, from memory: UnsafeMutableRawBufferPointer
    ) {
        unsafe self.withUnsafeMutableBytes { bytes in
            unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[range]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: memory[range]))
        }
    }
}
