/// What an acknowledged write survives.
public enum Durability: String, Hashable, Sendable, CaseIterable {
    /// The end of nothing in particular: the operating system may be told later.
    case memory
    /// The end of the process, `kill -9` included.
    case process
    /// The loss of power, as far as the disk keeps its word.
    case disk
}

/// How blocks of sealed segments are stored. Whatever is chosen, what was stored otherwise before
/// stays readable, and takes the new form as compaction comes to it.
public enum Compression: String, Hashable, Sendable, CaseIterable {
    /// LZ4, for each block that it makes smaller by at least an eighth; the others as they are.
    case lz4
    /// Every block as it is: more bytes on disk, and no time spent on packing and unpacking.
    case none
}

/// How a store is opened.
public struct StoreOptions: Hashable, Sendable {
    /// What a write survives when it does not say so itself.
    public var durability: Durability
    /// Whether to create the store if the directory is missing or empty. Beside a directory
    /// `NAME.damaged` or `NAME.partial-` and a number, which repairs, restores and backups make,
    /// none is created: it throws `notAStore`, which says what to do (<doc:Operations>).
    public var createsIfMissing: Bool
    /// Opens beside a writer in another process, changes no byte, and sees what was in the log at
    /// the moment of opening: a copy of up to three logs, in memory. Throws `locked` if the writer
    /// sealed a log during each of a hundred attempts.
    public var isReadOnly: Bool
    /// Written into the version of every local write; at most ``Limits/authorBytesMax`` bytes.
    public var author: String
    /// The size at which the active segment is sealed, in bytes: 1 MiB...1 GiB.
    public var segmentBytes: Int
    /// Bytes of memory that the store takes in all, up to a few MiB: 8 MiB...1 TiB. The block
    /// cache is part of it; mapped files are not, since their pages are the page cache of the
    /// system, which takes them back when it needs them. nil, the default, stands for 64 MiB
    /// beside the block cache.
    ///
    /// What the caller holds comes on top: batches, snapshots, records that were read.
    public var memoryLimit: Int?
    /// Bytes of verified, decompressed blocks kept for readers: 0... and at most
    /// ``memoryLimit`` - 4 MiB. nil, the default, stands for what writing does not need of
    /// ``memoryLimit``, which is half of it or more, or for 64 MiB if that is nil, too.
    public var blockCacheBytes: Int?
    /// How many superseded versions of each key survive compaction: 0...1,000,000.
    public var historyVersions: Int
    /// For how long superseded versions survive compaction besides, counted from when the next
    /// one was written: 0 (the default) to 100 years, by milliseconds.
    public var historyAge: Duration
    /// For how long a deletion is kept for peers that have not heard of it: 1 minute to 100 years,
    /// by milliseconds; 30 days if not said otherwise. Counted from when it was stamped. A peer
    /// that was away for longer, and lacks a deletion that was forgotten meanwhile, starts afresh
    /// when it comes again: that costs more than an exchange, and loses nothing.
    ///
    /// Once all peers have it a deletion goes earlier, and never as long as no peer has it. 30 days
    /// are what the services keep whose clients come over to this one, and longer than most devices
    /// are out of use.
    public var tombstoneAge: Duration
    /// Whether segments are merged in the background as they accumulate, expired records deleted,
    /// and long rows of deletions passed over once, before a reader has to.
    public var compactsAutomatically: Bool
    /// Bytes that merging writes a second at most: 0... 0, the default, is no bound, and then a
    /// merge rests only while writers wait for a log to be sealed. A bound that is below what is
    /// written in the long run lets segments accumulate, and slows writers down in the end.
    public var compactionBytesPerSecond: Int
    /// How segments that are sealed or compacted from now on store their blocks.
    public var compression: Compression
    /// Values of at least so many bytes are kept apart from their keys when a log is sealed, so
    /// that compaction does not write them anew each time: 64 bytes to 256 MiB, and one more byte
    /// to keep none apart. Holds for what is sealed or compacted from now on. A value of 4 KiB
    /// (the default) has a block of its own anyway.
    public var largeValueBytes: Int
    /// How far ahead of this store's clock the date of a peer's write may be and still be believed:
    /// 0 to 100 years; 5 minutes unless it says otherwise. What is dated later than that moves no
    /// clock here, and the module TidemarkSync holds it until its date has come where it would
    /// otherwise win by it.
    public var clockAheadMax: Duration
    /// Entries after which a run goes on in another segment: smaller in tests than anyone would
    /// want it.
    package var segmentEntriesMax = Limits.segmentEntriesMax
    /// How many states of datasets stay in memory although nobody holds them. For tests.
    package var keptDatasetStatesMax = Limits.keptDatasetStatesMax
    /// Whether the store does all work on the thread of its caller, when that would wait for it,
    /// and starts no thread of its own: see ``Store/compactStep()``. One thread uses it then, and
    /// what it does follows from what it is told. For simulations.
    package var runsInline = false
    /// Mistakes made on purpose, so that tests can tell whether they would be found.
    package var plantedBugs: PlantedBugs = []

    public init(
        durability: Durability = .disk, createsIfMissing: Bool = true, isReadOnly: Bool = false,
        author: String = "", segmentBytes: Int = 32 << 20, memoryLimit: Int? = nil,
        blockCacheBytes: Int? = nil, historyVersions: Int = 0, historyAge: Duration = .zero,
        tombstoneAge: Duration = .seconds(30 * 86_400), compactsAutomatically: Bool = true,
        compactionBytesPerSecond: Int = 0, compression: Compression = .lz4,
        largeValueBytes: Int = 4_096, clockAheadMax: Duration = .seconds(300)
    ) {
        self.durability = durability
        self.createsIfMissing = createsIfMissing
        self.isReadOnly = isReadOnly
        self.author = author
        self.segmentBytes = segmentBytes
        self.memoryLimit = memoryLimit
        self.blockCacheBytes = blockCacheBytes
        self.historyVersions = historyVersions
        self.historyAge = historyAge
        self.tombstoneAge = tombstoneAge
        self.compactsAutomatically = compactsAutomatically
        self.compactionBytesPerSecond = compactionBytesPerSecond
        self.compression = compression
        self.largeValueBytes = largeValueBytes
        self.clockAheadMax = clockAheadMax
    }
}
