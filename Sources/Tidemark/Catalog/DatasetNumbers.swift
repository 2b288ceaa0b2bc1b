/// The numbers of users' datasets: which comes next, and which of those before were never used.
///
/// A number says to which dataset an entry belongs, so that two datasets may never have the same,
/// not even one after the other, as long as entries of the first may be left.
///
/// Invariants: ``checkInvariants()``. Thread rule: under the store's writer lock.
struct DatasetNumbers {
    /// The numbers behind it are for datasets of the store's own.
    static let last = Limits.systemDatasetNumbers.lowerBound - 1
    /// Stretches of unused numbers that are remembered. Those of further ones are never used.
    private static let stretchesMax = 1_024

    /// The one that is drawn next. All behind it are free.
    private(set) var next: DatasetID
    /// Numbers below the next one that no entry ever had: passed over when records of another
    /// replica were taken over with their number, or given up for such. Those of the time before
    /// opening are not known.
    private var unused: [ClosedRange<DatasetID>] = []
    /// Numbers given up by a deletion that may not be durable yet: their records must stay until
    /// then.
    private var undurable: Set<DatasetID> = []

    init(next: DatasetID) {
        self.next = next
    }

    /// nil if all are given out.
    mutating func draw() -> DatasetID? {
        guard next <= Self.last else { return nil }
        defer { next += 1 }
        return next
    }

    /// Whether no entry of any dataset ever had the number, as far as is known.
    func isFree(_ number: DatasetID) -> Bool {
        guard number > 0, number <= Self.last, next <= Self.last else { return false }
        if number >= next { return number - next <= Limits.datasetNumbersPassedMax }
        return unused.contains { $0.contains(number) }
    }

    /// Takes a number that is free, or that a dataset gives up which never had an entry.
    mutating func take(_ number: DatasetID) {
        if number >= next {
            if number > next { noteUnused(next...number - 1) }
            next = number + 1
        } else if let index = unused.firstIndex(where: { $0.contains(number) }) {
            let stretch = unused.remove(at: index)
            if stretch.lowerBound < number { noteUnused(stretch.lowerBound...number - 1) }
            if stretch.upperBound > number { noteUnused(number + 1...stretch.upperBound) }
        }
    }

    /// Takes note that a dataset has given up a number that no entry had.
    mutating func giveBack(_ number: DatasetID) {
        guard number > 0, number < next, !isFree(number) else { return }
        noteUnused(number...number)
    }

    /// Takes note of a number that is in a log or a manifest.
    mutating func noteUsed(_ number: DatasetID) {
        guard number <= Self.last else { return }
        next = max(next, number + 1)
    }

    private mutating func noteUnused(_ numbers: ClosedRange<DatasetID>) {
        if unused.count < Self.stretchesMax { unused.append(numbers) }
    }

    // MARK: - Deletions

    /// Takes note that a dataset has given a number up.
    mutating func retire(_ number: DatasetID) {
        undurable.insert(number)
    }

    /// Whether a number was given up, and may come back by a crash.
    func isRetiring(_ number: DatasetID) -> Bool { undurable.contains(number) }

    /// Takes note that the giving up of a number is durable.
    mutating func noteDurable(_ number: DatasetID) {
        undurable.remove(number)
    }

    // MARK: - Checking

    /// For tests: what always holds.
    func checkInvariants() {
        precondition(next > 0 && next <= Self.last + 1, "a number of the store's own comes next")
        precondition(unused.count <= Self.stretchesMax, "too many stretches are remembered")
        var before: DatasetID = 0
        for stretch in unused.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            precondition(stretch.lowerBound > before, "stretches of unused numbers overlap")
            before = stretch.upperBound
        }
        precondition(before < next, "a number is unused and not given out yet")
    }
}
