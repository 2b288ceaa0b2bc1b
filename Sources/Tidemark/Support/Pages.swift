internal import Glibc

/// Memory straight from the kernel, all zeros, and straight back to it.
///
/// For what is large and goes again: an allocator keeps part of what it is given back, the more the
/// larger it was (glibc: up to 64 MiB in each of its arenas), which would not be within any limit.
/// Pages that were never stored to take no memory.
enum Pages {
    /// A number of bytes, up to whole pages.
    static func roundedUp(_ byteCount: Int) -> Int { (byteCount + 4_095) & ~4_095 }

    static func take(byteCount: Int) -> UnsafeMutableRawPointer {
        let base = unsafe mmap(
            nil, max(1, byteCount), PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        precondition(unsafe base != MAP_FAILED, "the system has no memory left")
        return unsafe base!
    }

    /// - Parameter byteCount: the same as when it was taken.
    static func giveBack(_ base: UnsafeMutableRawPointer, byteCount: Int) {
        unsafe munmap(base, max(1, byteCount))
    }

    /// The size of a huge page, and what they are aligned to.
    private static let hugeBytes = 2 << 20

    /// Memory that will be stored to in no order, all of it: in place at once, so that no store
    /// meets a fault, and in huge pages if it is a multiple of these, so that few of them miss the
    /// translation cache. Kernels that know neither give it page by page.
    static func takeWhole(byteCount: Int) -> UnsafeMutableRawPointer {
        guard byteCount % hugeBytes == 0 else {
            let base = unsafe take(byteCount: byteCount)
            unsafe populate(base, byteCount: byteCount)
            return unsafe base
        }
        let wide = unsafe take(byteCount: byteCount + hugeBytes)
        let before = (hugeBytes - Int(bitPattern: wide) % hugeBytes) % hugeBytes
        let base = unsafe wide + before
        if before > 0 { unsafe giveBack(wide, byteCount: before) }
        if before < hugeBytes {
            unsafe giveBack(base + byteCount, byteCount: hugeBytes - before)
        }
        unsafe madvise(base, byteCount, MADV_HUGEPAGE)
        unsafe populate(base, byteCount: byteCount)
        return unsafe base
    }

    /// `MADV_POPULATE_WRITE`, which older headers do not have.
    private static let populateForWriting: Int32 = 23

    /// Has the pages of a range in place, as many stores would one by one.
    static func populate(_ base: UnsafeMutableRawPointer, byteCount: Int) {
        // Whole pages, since mappings begin with one. Where it cannot be done, stores do it.
        unsafe madvise(base, max(1, byteCount), populateForWriting)
    }

    /// From here on a piece of memory is worth the two system calls.
    private static let byteCountMin = 128 << 10

    /// For what is small mostly and large at times: pages then, else the allocator's, of which the
    /// content is anything. Aligned to 16 bytes.
    static func allocate(byteCount: Int) -> UnsafeMutableRawBufferPointer {
        guard byteCount >= byteCountMin else {
            return .allocate(byteCount: byteCount, alignment: 16)
        }
        return unsafe UnsafeMutableRawBufferPointer(
            start: take(byteCount: byteCount), count: byteCount)
    }

    /// - Parameter memory: all that ``allocate(byteCount:)`` gave.
    static func deallocate(_ memory: UnsafeMutableRawBufferPointer) {
        guard let base = memory.baseAddress, memory.count >= byteCountMin else {
            return unsafe memory.deallocate()
        }
        unsafe giveBack(base, byteCount: memory.count)
    }
}

/// A growing array in pages of its own (see ``Pages``).
///
/// Room that is asked for and not used costs nothing, so ask for the most there can be: growing
/// beyond it copies. Thread rule: one thread fills it; afterwards any number may read it.
@safe
final class PageArray<Element: BitwiseCopyable>: @unchecked Sendable {
    // Unchecked: filled by one thread before others see it, and never changed afterwards. The
    // members are loaded at each access, so exclusivity is not checked: nothing here calls out.

    @exclusivity(unchecked) private var base: UnsafeMutablePointer<Element>
    @exclusivity(unchecked) private var capacity: Int
    @exclusivity(unchecked) private var used = 0

    private static var stride: Int { MemoryLayout<Element>.stride }

    init(capacity: Int) {
        unsafe self.capacity = max(1, capacity)
        unsafe base = Self.take(max(1, capacity))
    }

    deinit {
        unsafe Pages.giveBack(base, byteCount: capacity * Self.stride)
    }

    private static func take(_ capacity: Int) -> UnsafeMutablePointer<Element> {
        unsafe Pages.take(byteCount: capacity * stride).bindMemory(
            to: Element.self, capacity: capacity)
    }

    @inline(__always)
    var count: Int { unsafe used }

    /// Good until the array grows.
    @inline(__always)
    var elements: UnsafeMutableBufferPointer<Element> {
        unsafe UnsafeMutableBufferPointer(start: base, count: used)
    }

    /// Good until the array grows.
    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(elements) }

    @inline(__always)
    subscript(index: Int) -> Element {
        precondition(unsafe index >= 0 && index < used, "an element beyond the last")
        return unsafe base[index]
    }

    @inline(__always)
    func append(_ element: Element) {
        if unsafe used == capacity { grow(to: unsafe 2 * capacity) }
        unsafe base[used] = element
        unsafe used += 1
    }

    func append(contentsOf other: UnsafeBufferPointer<Element>) {
        let needed = unsafe used + other.count
        if unsafe needed > capacity { grow(to: unsafe max(2 * capacity, needed)) }
        guard let start = other.baseAddress else { return }
        unsafe (base + used).update(from: start, count: other.count)
        unsafe used = needed
    }

    /// Makes the array that long; elements that are new have all bits zero, unless there were
    /// others in their places before. The memory is in place then: they may be set in any order.
    func resize(to count: Int) {
        if unsafe count > capacity { grow(to: count) }
        unsafe used = count
        unsafe Pages.populate(base, byteCount: count * Self.stride)
    }

    /// Keeps the room.
    func removeAll() {
        unsafe used = 0
    }

    private func grow(to wanted: Int) {
        let wider = unsafe Self.take(wanted)
        unsafe wider.update(from: base, count: used)
        unsafe Pages.giveBack(base, byteCount: capacity * Self.stride)
        unsafe base = wider
        unsafe capacity = wanted
    }
}
