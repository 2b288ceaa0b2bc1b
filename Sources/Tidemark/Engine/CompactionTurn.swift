/// Who may make segments out of segments: one thread at a time, be it for a merge, a sweep of what
/// has expired, or the taking over of a peer's.
struct CompactionTurn {
    /// The thread that has the turn, 0 if none has.
    private var holder: UInt = 0
    /// Whether there may be something to be merged in the background.
    var isWanted = false

    var isTaken: Bool { holder != 0 }
    /// Whether the present thread has it.
    var isMine: Bool { holder == CurrentThread.id }

    /// To be called when nobody has it.
    mutating func take() {
        precondition(!isTaken, "two threads make segments out of segments")
        holder = CurrentThread.id
    }

    mutating func giveBack() {
        precondition(isTaken, "a turn is given back that nobody has")
        holder = 0
    }
}
