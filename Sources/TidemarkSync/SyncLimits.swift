import Tidemark

/// Every bound of the exchange in one place, each with its reason.
public enum SyncLimits {
    /// The versions of the protocol that this build speaks.
    public static let protocolVersions: ClosedRange<UInt16> = 1...1
    /// Bytes of a whole message: the largest value and key, and 31 MiB for everything around
    /// them. Nothing larger is read, decompressed or sent.
    public static let messageBytesMax = Limits.valueBytesMax + (32 << 20)
    /// Bytes of keys and values in a page before its last record, which may be of any size.
    public static let pageBytesMax = 16 << 20
    /// Records in a page: bounds the memory for them beside their keys and values.
    public static let pageRecordsMax = 100_000
    /// Entries of one version vector: more replicas than this have written to one dataset.
    public static let vectorEntriesMax = 65_536
    /// Entries of all vectors of the records of one message, as they are in memory: about 400 MB.
    /// Vectors are shared on the wire, so a small message could ask for any amount.
    public static let messageVectorEntriesMax = 16 << 20
    /// The same as a sender plans it, with room for records that have seen more than the dataset.
    static let pageVectorEntriesMax = messageVectorEntriesMax / 4
    /// The same for a peer that is not trusted: about 25 MB.
    static let strangersVectorEntriesMax = 1 << 20
    /// Datasets in one answer to a hello; the asker asks for the rest.
    public static let datasetsPerAnswerMax = 1_000
    /// Datasets exchanged at the same time: each has up to two pages and their messages in memory.
    public static let parallelDatasetsMax = 64
    /// Datasets that one watch asks about: as many as one hello tells of.
    public static let watchedDatasetsMax = datasetsPerAnswerMax
    /// Watches that wait at the same time for one synchronizer, where it has more datasets to ask
    /// about than one watch may name: each occupies a connection.
    public static let watchesAtOnceMax = 8
    /// How long the answer to a watch may wait, in milliseconds: less than the half minute or
    /// minute after which proxies and clients give up on a silent connection.
    public static let watchMillisecondsMax = 25_000
    /// The shortest wait of a watch that shares the time with others, in milliseconds: below that
    /// they would do little but ask.
    static let watchMillisecondsMin = 1_000
    /// Bytes of a synchronizer's name: its length takes one byte in a key.
    static let synchronizerNameBytesMax = 255
    /// Marks in a hello: for as many peers a store knows since when nothing has changed.
    static let marksMax = SettledExchange.countMax
    /// Bytes of the text in an error answer.
    public static let failureTextBytesMax = 4_096
    /// Conflicts listed by name in a result; all are counted.
    public static let settlementsMax = 1_000
    /// Conflicting keys listed in the answer to a push. The asker pulls them all anyway.
    public static let conflictKeysMax = 1_000
    /// Things lost by one merge that its report shows; all are counted.
    public static let lostFieldsMax = 100
    /// Bytes of a value that a report shows; a greater one is left out.
    public static let lostValueBytesMax = 1_024
    /// Things lost that the reports of one result show together: with the values at their largest
    /// about 12 MB in memory.
    public static let reportedFieldsMax = 1_000
    /// Bytes of stored blocks in one range of a segment before its last block, which may be of any
    /// size: what is lost when a connection breaks, and small beside the memory for a segment.
    static let segmentRangeBytesMax = 4 << 20
    /// Ranges asked for at a time, so that the peer and the network work while blocks are checked.
    static let segmentRangesAtOnce = 3
    /// A dataset of fewer changes is asked for record by record, which costs a message less.
    static let segmentChangesMin: UInt64 = 1_000
    /// Of a dataset that is handed over as it lies: a store may make some hundred times as many
    /// more, whatever numbers its peers have used up.
    static let pushedDatasetNumberMax: UInt32 = 1 << 24
    /// Bytes of all tables of an offer of segments: each takes up to a dozen times as much.
    static let segmentTablesBytesMax = 16 << 20
    /// How often another offer is asked for because the peer's segments were merged meanwhile.
    static let segmentOffersMax = 3
    /// Replicas without a common checkpoint compare ranges of keys if both have counted so many
    /// changes. Of fewer, all that the vectors do not show to be known is asked for at once, which
    /// costs fewer messages.
    static let comparedChangesMin: UInt64 = 1_000
    /// They do not if more than one in so many changes of the peer is known to be missing.
    static let comparedMissingShare: UInt64 = 8
    /// Ranges in a request: with bounds of some bytes about 100 KB.
    static let comparedRangesMax = 4_096
    /// Parts that a range is cut into: a message takes the search two steps further, and 16 * 16
    /// parts of a range of 256 records are records.
    static let rangePartsMax = 16
    /// Records of a range that are listed rather than cut into parts: about as many as the parts
    /// have bytes.
    static let rangeRecordsMax = 32
    /// The same of a range in which the asker has nothing, so that it lacks all of them.
    static let listedRecordsMax = 1_024
    /// Bytes of bounds and keys in a request or answer before its last range.
    static let comparedBytesMax = 1 << 20
    /// The same as a receiver accepts: a range adds the keys of its parts or of its records to it.
    static let comparedKeyBytesMax = 8 << 20
    /// Ranges that one search may ask for: beyond it, too much differs for it to be worth while.
    static let searchedRangesMax = 131_072
    /// Keys that a search may find to differ. Beyond it, likewise.
    static let differingKeysMax = 65_536
    /// Keys in one request that asks for records by their keys: as many as one answer to a push
    /// names in conflict.
    static let lookupKeysMax = conflictKeysMax
    /// Records that are dropped in one batch, so that no writer waits long.
    static let dropsAtOnce = 1_000
    /// Changes that one answer about a part passes over or evaluates at most, whether they belong
    /// to it or not: some tens of milliseconds, after which the asker asks on. Of a large scope
    /// fewer: see `ScopeBudget`.
    static let scopedChangesMax = 65_536
    /// Bytes of a scope up to which that holds.
    static let scopeBytesPerChange = 256
    /// Bytes of values that are read for one such answer before its last one, for the same reason.
    static let scopedValueBytesMax = 32 << 20
    /// Conditions on values up to which that holds.
    static let scopeFieldsPerValue = 8
    /// Settled conflicts that the journal of a dataset keeps: what is read again with each page in
    /// which there are conflicts stays within milliseconds.
    public static let journalConflictsMax = 100_000
    /// For how long: 100 years, which fits any arithmetic here.
    public static let journalAgeMax = Duration.seconds(3_155_760_000)
    /// Bytes of a value in the journal: an entry holds up to four, and a batch many entries.
    public static let journalValueBytesMax = 1 << 20
    /// Batches of exchanges that are remembered of a dataset.
    public static let journalExchangesMax = 10_000
    /// Conflicts of one dataset that may wait with what the other side has. Beyond that they are
    /// left where they are, and the exchange begins there again until some are settled.
    public static let pendingMax = 10_000
    /// Bytes of what waits in one dataset.
    static let pendingBytesMax = 256 << 20
    /// Records of one dataset, in each direction, that may be left out because they failed. Beyond
    /// that the exchange ends with the error of the next one.
    public static let failedMax = 10_000
    /// Datasets that are told of as going into one.
    public static let mergedDatasetsMax = 1_000
    /// Bytes of the words for whose a merged dataset was, as for an author.
    public static let originBytesMax = Limits.authorBytesMax
    /// Keys in one question for records that were left out.
    static let fetchedKeysMax = 1_000
    /// Bytes of the words for why something waits or failed.
    public static let reasonBytesMax = 1_024
    /// Bytes that the journal adds to one batch; values that would be more are left out.
    static let journalBatchBytesMax = 16 << 20
    /// Entries that one batch takes out of a journal; what is left goes with the next.
    static let journalTrimMax = 4_096
    /// Bytes of keys and values that a responder writes anew, while it disputes an id, for one push
    /// that meets conflicts, before the last record: the page that brought them has a bound, and
    /// what lies here of its keys has none. The rest is written anew when the asker comes again.
    static let renewedBytesMax = 4 * pageBytesMax
    /// Keys whose versions are read at once for a look at the past: few enough to be in memory.
    static let keysWalkedAtOnce = 64
    /// How often a fresh start begins again because the peer has forgotten more meanwhile.
    static let freshStartsMax = 3
    /// So many changes are pulled in the order of their keys rather than in the order of change,
    /// if they are many of all as well: fewer cost little either way.
    static let sweptChangesMin: UInt64 = 32_768
    /// They are if they are at least one in so many of all that the peer has counted: a sweep looks
    /// at every record of the peer.
    static let sweptShare: UInt64 = 4
    /// Records that one answer to a sweep looks at, told or not: some tens of milliseconds.
    static let sweptRecordsMax = 262_144
    /// Bytes of keys and values of these, without those that lie apart: as much time with larger
    /// records, and several times what a page tells.
    static let sweptBytesMax = 64 << 20
    /// A sweep is given up if a page before the last has not one in so many of the records and the
    /// bytes that were asked for: then many of the changes are of few keys, and the peer reads
    /// hundreds of records for each that it tells.
    static let sparsePageShare = 16
    /// So many changes are worth a walk over all records of a dataset, to find out which of them
    /// need not be looked at because they were superseded.
    static let walkedChangesMin: UInt64 = 32_768
    /// While a page of so many records is pushed the next one is read: a smaller one is soon read
    /// when it is due.
    static let readAheadRecordsMin = 1_024
    /// So many of these may leave one after the other without a sync, if all in them was durable
    /// before: after a loss of power the next push begins up to so many pages earlier.
    static let unsyncedPagesMax = 8
    /// How often a page is compared afresh because local writes moved its records on.
    static let comparisonRoundsMax = 100
}
