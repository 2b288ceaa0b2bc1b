/// Every bound of the console in one place, each with its reason. A request works and takes memory
/// by these, whatever the store holds.
enum ConsoleLimits {
    // MARK: Sessions

    /// People who look at one hub at a time, several browsers each. The one that was used longest
    /// ago gives way.
    static let sessionsMax = 64
    /// A session that is not used for so long is over: an hour.
    static let sessionIdleMilliseconds: UInt64 = 3_600_000
    /// And any after a working day, so that a stolen cookie is not good for long.
    static let sessionMilliseconds: UInt64 = 12 * 3_600_000
    /// Of one address: who mistypes a token tries again a few times.
    static let signInsPerSecond = 1
    static let signInBurst = 10
    static let signInNamesMax = 4_096

    // MARK: Pages

    static let rowsDefault = 50
    static let rowsMax = 200
    /// Entries that are looked at for one page of a search; then the page ends with what was found,
    /// and says where to go on.
    static let scannedMax = 4_096
    /// Rows that are looked at for one page in an order in which they do not lie on disk: for
    /// 100,000 some tenths of a second of one reading thread. Of more the first ones by name are
    /// sorted, and the page says so.
    static let sortedMax = 200_000
    /// Names that are read at once.
    static let namesAtOnce = 256
    /// Bytes of values that are read for one page of records.
    static let pageValueBytesMax = 8 << 20
    /// Records that are counted before a count is told as "at least".
    static let countedMax = 10_000

    // MARK: Bytes that are shown

    /// Of a key or value in a list.
    static let shownBytes = 256
    /// Of a value by itself, unless the caller says so.
    static let valueBytesDefault = 65_536
    static let valueBytesMax = 262_144
    /// A key up to here stands in links; a longer one is named by its place in the order of change,
    /// since the head of a request has room for little more.
    static let keyInLinkBytesMax = 4_096

    // MARK: Versions and conflicts

    /// Whose ancestry is drawn.
    static let versionsMax = 50
    /// Waiting versions of one key.
    static let waitingOfKeyMax = 16
    /// Conflicts of one dataset in a list of all.
    static let conflictsOfDatasetMax = 20

    // MARK: Streams

    /// Pages that listen at a time.
    static let listenersMax = 16
    /// Events that wait for one of them; older ones give way, and it is told how many.
    static let waitingEventsMax = 256
    /// Operations of one dataset that are told at once; earlier ones are told as a number.
    static let operationsAtOnce = 64
    /// Datasets of which it is known what was told last.
    static let followedMax = 4_096
    static let beatPeriod = Duration.seconds(15)

    // MARK: Charts and audit

    static let samplePeriod = Duration.seconds(5)
    /// An hour of them.
    static let samplesMax = 720
    /// Bytes of the audit file that are read for one page.
    static let auditBytesMax = 262_144
}
