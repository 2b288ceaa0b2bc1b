/// A page of a list in an order in which nothing lies on disk: all rows are looked at, and of these
/// only those of the page are remembered, whatever their number.
///
/// Each page is of its own moment. A row that moves in the order between two pages may come twice,
/// or not at all.
struct RankedPage {
    /// What a row is sorted by, and by its name among those that are alike.
    struct Rank: Hashable, Comparable, Sendable {
        let value: UInt64
        let name: String

        init(_ value: UInt64, _ name: String) {
            self.value = value
            self.name = name
        }

        /// `17/name`; nil for anything else.
        init?(_ text: String) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let value = UInt64(parts[0]), !parts[1].isEmpty else {
                return nil
            }
            self.init(value, String(parts[1]))
        }

        /// Where a list goes on, as requests and answers have it.
        var text: String { "\(value)/\(name)" }

        static func < (left: Rank, right: Rank) -> Bool {
            (left.value, left.name) < (right.value, right.name)
        }
    }

    private let after: Rank?
    private let isDescending: Bool
    private let limit: Int
    /// In the order of the page.
    private(set) var ranks: [Rank] = []
    /// Whether there are rows behind the page.
    private(set) var hasMore = false

    /// - Parameters:
    ///   - after: the last row of the page before.
    ///   - limit: of rows: 1...
    init(after: Rank?, isDescending: Bool, limit: Int) {
        self.after = after
        self.isDescending = isDescending
        self.limit = limit
    }

    private func precedes(_ left: Rank, _ right: Rank) -> Bool {
        isDescending ? right < left : left < right
    }

    /// O(1) for a row that is not of the page, else O(rows of the page).
    mutating func consider(_ rank: Rank) {
        if let after, !precedes(after, rank) { return }
        if ranks.count == limit, let last = ranks.last {
            hasMore = true
            guard precedes(rank, last) else { return }
            ranks.removeLast()
        }
        var (low, high) = (0, ranks.count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(ranks[middle], rank) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        ranks.insert(rank, at: low)
    }
}
