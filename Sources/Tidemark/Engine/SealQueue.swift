/// The full logs that are to be sealed, oldest first, and what is under way among them.
///
/// A job stays until the segment of its log is part of the store; its thread may be at it a little
/// longer, to let go of what the log held in memory.
struct SealQueue {
    private(set) var jobs: [SealJob] = []
    /// Threads that seal, or let go of what a sealed log held in memory.
    private(set) var threadCount = 0
    /// Of these, those that seal in the memory of merging, which does not begin meanwhile.
    private(set) var loanCount = 0

    var isEmpty: Bool { jobs.isEmpty }
    /// Whether so many wait that no other log may end.
    var isFull: Bool { jobs.count >= Limits.sealQueueMax }
    /// Of the oldest job. No job is handed out but to who seals it: whoever held on to one would
    /// keep the states of its datasets in memory.
    var oldestLog: UInt64? { jobs.first?.memtable.log.number }
    var newestLog: UInt64? { jobs.last?.memtable.log.number }
    /// How far the sealing of the oldest log has come.
    var progress: SealProgress? { jobs.first?.progress }
    var isSealing: Bool { threadCount > 0 }
    /// Whether what a log held in memory, which is sealed, is being let go.
    var isLettingGo: Bool { threadCount > jobs.count { $0.isBegun } }
    /// Where the oldest job stands that nobody has begun.
    var indexToBegin: Int? { jobs.firstIndex { !$0.isBegun } }
    var logs: [LogSegment] { jobs.map(\.memtable.log) }

    func job(ofLog number: UInt64) -> SealJob? {
        jobs.first { $0.memtable.log.number == number }
    }

    /// Whether the memtables that wait leave room for sealing one of them beside another. Whatever
    /// comes after them has a share of its own.
    func hasRoom(beside memtable: Memtable, in budget: MemoryBudget) -> Bool {
        let waitingBytes = jobs.reduce(0) { $0 + $1.memtable.byteCount }
        let sealingBytes = memtable.count * MemoryBudget.sealingBytesEachEntry
        return waitingBytes + sealingBytes <= Limits.sealQueueMax * budget.memtableBytesMax
    }

    mutating func append(_ job: SealJob) {
        jobs.append(job)
    }

    /// Takes note that a thread has begun the job at an index.
    ///
    /// - Parameter borrows: whether it does so in the memory of merging.
    mutating func begin(at index: Int, borrows: Bool) {
        jobs[index].isBegun = true
        threadCount += 1
        if borrows { loanCount += 1 }
    }

    /// Takes note that a thread is done, whatever came of it.
    mutating func end(borrowed: Bool) {
        threadCount -= 1
        if borrowed { loanCount -= 1 }
    }

    /// Takes note of how far the sealing of a log has come.
    mutating func note(_ progress: SealProgress, of memtable: Memtable) {
        guard let index = jobs.firstIndex(where: { $0.memtable === memtable }) else { return }
        jobs[index].progress = progress
    }

    /// Removes the oldest job, whose segment is part of the store now.
    mutating func removeOldest() {
        jobs.removeFirst()
    }

    /// Traps unless the jobs are in the order of their logs, those that were begun come before all
    /// others, and no count says more than there is.
    func checkInvariants() {
        let numbers = jobs.map(\.memtable.log.number)
        precondition(zip(numbers, numbers.dropFirst()).allSatisfy(<), "logs wait in no order")
        let begun = jobs.count { $0.isBegun }
        precondition(jobs.prefix(begun).allSatisfy(\.isBegun), "a log is passed over")
        precondition((0...2).contains(threadCount), "\(threadCount) threads seal")
        precondition((0...threadCount).contains(loanCount), "a share is lent and nobody has it")
    }
}
