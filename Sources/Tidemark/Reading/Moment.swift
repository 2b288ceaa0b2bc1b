/// One moment of the store.
struct Moment {
    let view: ReadView
    let sequenceMax: UInt64
    /// By which records have expired, in milliseconds since 1970; 0 to see all as they are stored.
    var now: UInt64 = 0
}
