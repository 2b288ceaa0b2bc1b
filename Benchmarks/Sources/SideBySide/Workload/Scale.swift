/// How much work a run does, and when it stops a slow engine.
struct Scale: Codable, Sendable {
    /// Records in the store.
    var records = 1_000_000
    /// Seconds after which a fill ends before all records are through.
    var fillSeconds = 0.9
    /// Seconds after which overwriting ends.
    var overwriteSeconds = 1.2
    /// Seconds after which deleting ends.
    var deleteSeconds = 0.3
    /// Seconds of each kind of read.
    var readSeconds = 0.2
    /// Seconds of each mix of reads and writes.
    var mixSeconds = 0.3
    /// Seconds of reading while another thread overwrites.
    var contentionSeconds = 1.0
    /// How often a quarter of the records is overwritten for the amplification of it.
    var sustainedPasses = 5
    /// Seconds after which that ends.
    var sustainedSeconds = 15.0
    /// Seconds of single synced writes.
    var syncSeconds = 0.3
    /// How often a store is opened.
    var repetitions = 3
    var datasets = 100_000
    /// Seconds after which filling datasets one by one ends.
    var datasetsSeconds = 4.0
    var recordsPerDataset = 20
    /// Bytes of large values that are put and read.
    var largeBytes = 192 << 20
    /// Seconds of each physical limit.
    var limitSeconds = 0.05

    static let normal = Scale()

    /// Enough to see that everything still runs.
    static let quick = Scale(
        records: 20_000, fillSeconds: 0.5, overwriteSeconds: 0.2, deleteSeconds: 0.2,
        readSeconds: 0.05, mixSeconds: 0.05, contentionSeconds: 0.1, sustainedSeconds: 0.5,
        syncSeconds: 0.05, repetitions: 1, datasets: 1_000, largeBytes: 8 << 20,
        limitSeconds: 0.02)

    static let large = Scale(
        records: 5_000_000, fillSeconds: 10, overwriteSeconds: 12, deleteSeconds: 5,
        readSeconds: 0.6, mixSeconds: 1, contentionSeconds: 4, sustainedSeconds: 30,
        syncSeconds: 0.6, datasets: 100_000)
}
