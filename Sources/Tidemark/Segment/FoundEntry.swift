/// An entry that a point read found, and what keeps its bytes where they are.
///
/// Whoever gets one calls `release` when done with the entry, and holds the view it came from
/// until then. It counts no references on the way: threads that read the same segment would wait
/// for each other.
@safe
struct FoundEntry {
    // The view that the reader holds holds the tables and the cache.

    let entry: Entry
    private let tablesReference: Unmanaged<VersionTables>
    private let cache: Unmanaged<BlockCache>?
    private let pinned: BlockCache.Pinned?
    /// A block that no frame can hold, retained.
    private let own: Unmanaged<Block>?

    /// An entry in a mapping that lives as long as the view.
    @inline(__always)
    init(_ entry: Entry, _ tables: VersionTables) {
        self.entry = entry
        unsafe tablesReference = .passUnretained(tables)
        unsafe cache = nil
        pinned = nil
        unsafe own = nil
    }

    @inline(__always)
    init(
        _ entry: Entry, _ tables: VersionTables, _ pinned: BlockCache.Pinned, in cache: BlockCache
    ) {
        self.entry = entry
        unsafe tablesReference = .passUnretained(tables)
        unsafe self.cache = .passUnretained(cache)
        self.pinned = pinned
        unsafe own = nil
    }

    init(_ entry: Entry, _ tables: VersionTables, own: Block) {
        self.entry = entry
        unsafe tablesReference = .passUnretained(tables)
        unsafe cache = nil
        pinned = nil
        unsafe self.own = .passRetained(own)
    }

    var tables: VersionTables { unsafe tablesReference.takeUnretainedValue() }

    /// Which tables these are, without counting a reference to them.
    @inline(__always)
    var tablesID: ObjectIdentifier {
        unsafe tablesReference._withUnsafeGuaranteedRef { ObjectIdentifier($0) }
    }

    /// The entry is no longer good.
    @inline(__always)
    func release() {
        if let pinned, let cache = unsafe cache {
            unsafe cache._withUnsafeGuaranteedRef { $0.unpin(pinned) }
        } else if let own = unsafe own {
            unsafe own.release()
        }
    }
}
