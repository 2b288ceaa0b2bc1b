/// Every bound of the store in one place, each with its reason.
public enum Limits {
    /// Bytes in a dataset's name: the 128 that Cognito Sync allowed, and about as much again for
    /// what a service puts in front, like the id of an identity.
    public static let datasetNameBytesMax = 255
    /// Bytes in a key: its length and two marks take three bytes at most in front of an entry.
    public static let keyBytesMax = 65_535
    /// Bytes in a value: 256 MiB. Larger things belong in files, with their path as the value.
    public static let valueBytesMax = 256 << 20
    /// Bytes in an author's name.
    public static let authorBytesMax = 255
    /// Bytes in one write batch, keys, values and versions together: 512 MiB. A batch is one block
    /// of the log, checked and applied as a whole, so it must fit in memory and in a segment.
    public static let batchBytesMax = 512 << 20
    /// Bytes of keys, values and versions that were written in the last moment of a fresh start and
    /// go into one batch with its last page. What is more is asked about by another attempt.
    static let outliversBytesMax = 16 << 20
    /// Bytes of a segment's log: from what a small test needs to a quarter of what 32-bit offsets
    /// in it can reach, so that a batch of the largest size still fits behind it.
    public static let segmentBytes = 1 << 20...1 << 30
    /// Bytes of ``StoreOptions/memoryLimit``: from memtables and segments of some ten thousand
    /// entries, below which the cost of each comes to count, to more than a machine has.
    public static let memoryLimit = 8 << 20...1 << 40
    /// Entries of a sealed segment, after which its run goes on in another: making a segment takes
    /// 28 bytes of memory for each. A ``StoreOptions/memoryLimit`` makes it fewer.
    static let segmentEntriesMax = 1 << 20
    /// Bytes of a sealed segment before compression, after which its run goes on in another: the
    /// place of an entry holds the number of its block in 20 bits, and blocks have 4 KiB.
    static let segmentRawBytesMax: UInt64 = 1 << 30
    /// From what length on values may be kept apart: below 64 bytes, what that takes is as much as
    /// the value; above the greatest length none is.
    public static let largeValueBytes = 64...(256 << 20) + 1
    /// Bytes of a value file, after which its run goes on in another segment: what is given up of
    /// a file that is half empty is written at once.
    static let valueFileBytesMax: UInt64 = 256 << 20
    /// Sync counts, counters of dots and numbers of files read from disk or wire: what a million
    /// changes a second reach in two thousand years. A greater one is damage or malice, and the
    /// next one after the greatest would be none.
    static let countMax: UInt64 = 1 << 56
    /// The last number that a dataset can have. Each time that one is made, or made again after a
    /// deletion, takes one, and none is given out twice. Of the 32 bits one is left free, so that
    /// no number read from disk can make the next one overflow.
    static let datasetNumberMax = UInt32.max / 2 - 2
    /// The numbers of the store's own datasets: far more than there will ever be, and at the top,
    /// so that the numbers given out do not depend on them.
    static let systemDatasetNumbers = datasetNumberMax - 1_023...datasetNumberMax
    /// When a record may expire, in milliseconds since 1970: 48 bits of them, as in the times of
    /// versions, which last until the year 10889.
    public static let expiryMax: UInt64 = 1 << 48 - 1
    /// Bytes for blocks that readers keep: up to a terabyte, above which it is a mistake.
    public static let blockCacheBytes = 0...1 << 40
    /// Superseded versions of a key that may be kept.
    public static let historyVersions = 0...1_000_000
    /// For how long superseded versions may be kept: 100 years, which fits any arithmetic here.
    public static let historyAge = Duration.zero...Duration.seconds(3_155_760_000)
    /// For how long deletions are kept for peers that have not heard of them: not so short that
    /// every exchange with one that was closed in between would be a fresh start.
    public static let tombstoneAge = Duration.seconds(60)...Duration.seconds(3_155_760_000)
    /// How far ahead of this store's clock a peer's write may be dated: 100 years, likewise.
    public static let clockAheadMax = Duration.zero...Duration.seconds(3_155_760_000)
    /// Events that wait for an observer of a store: a burst of them fits, and takes less than a
    /// megabyte of memory.
    public static let waitingEventsMax = 1_024
    /// Threads of one verification: more than any disk has use for.
    public static let verificationThreads = 1...64
}

// MARK: - Files

extension Limits {
    /// Bytes of a log: offsets in it have 32 bits.
    static let logBytesMax = UInt64(UInt32.max)
    /// Bytes of a manifest: far above any real one, so that no false size takes all memory.
    static let manifestBytesMax: UInt64 = 1 << 30
    /// Bytes of the origin of a part: its marks are for 4 MiB each, and a segment has a gigabyte.
    static let partOriginBytesMax: UInt64 = 4 << 20
    /// Bytes between two marks of a part: a range of blocks, the last of which may be of any size.
    static let partRangeBytesMax = UInt64(valueBytesMax) + (64 << 20)
    /// For how long a part is kept that nobody asks for: a week, in which the peer has mostly
    /// merged what it gave out.
    static let partAgeMillisecondsMax: UInt64 = 7 * 86_400_000
    /// Numbers of datasets that may be passed over at once to take over what a peer has sealed, of
    /// 2^31: so no peer uses them up in a few steps.
    static let datasetNumbersPassedMax: DatasetID = 1 << 24
    /// Segments of one offer to a replica that has nothing: what the tables of as many may take is
    /// bounded by that.
    package static let offeredSegmentsMax = 4_096
    /// Bytes of the tables of a segment that is offered. Vectors that were written out once are
    /// whole in memory, about twelve times as long.
    static let offeredTablesBytesMax = 1 << 20
    /// Attempts to open a store beside its writer: more than any writer can be ahead by luck, since
    /// sealing a log takes longer than copying it.
    static let readOnlyAttemptsMax = 100
}

// MARK: - Memory

extension Limits {
    /// Memtables that may wait to be sealed beside the active one: their memory is bounded so.
    static let sealQueueMax = 2
    /// Bytes of a ``StoreOptions/memoryLimit`` that are not for the block cache: a memtable of some
    /// ten thousand entries and segments of some 60,000.
    static let workingBytesMin = 4 << 20
    /// States of datasets that stay in memory although nobody holds them: about 1.5 MB.
    static let keptDatasetStatesMax = 4_096
    /// Datasets whose changes are noted between two exchanges, 8 to 16 MB; of more nothing is known
    /// any more, and all are looked at.
    static let rosterNamesMax = 65_536
    /// Of these, how many a closing keeps for the next opening.
    static let rosterNamesKeptMax = 4_096
    /// Openings whose marks are known, the present one included.
    static let rosterStretchesMax = 16
    /// What is kept for the next opening takes no more.
    static let rosterBytesMax: UInt64 = 16 << 20
    /// Spans of deleted keys that walks leap over: a few queues.
    static let gapsMax = 16
    /// Tables of sums: for datasets that are compared again and again.
    static let sumTablesMax = 64
    /// Leaves of all tables of sums together, but for one table that has more: some 9 MB with short
    /// keys.
    static let sumLeavesMax = 65_536
    /// Places of damage that are told in one opening: a disk that fails altogether tells no more by
    /// more of them.
    static let damagedPlacesMax = 1_000
}
