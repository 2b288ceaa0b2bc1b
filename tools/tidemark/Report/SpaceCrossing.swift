import Tidemark

/// What each of the heaviest datasets has of each of the largest segments, and in a row and a
/// column of their own what all others have.
struct SpaceCrossing {
    /// Bytes of keys and values, before compression.
    struct Cell: Equatable {
        var live: UInt64 = 0
        var dead: UInt64 = 0
        /// Of which nothing was looked at.
        var unknown: UInt64 = 0

        var all: UInt64 { live + dead + unknown }

        static func += (left: inout Cell, right: Cell) {
            left.live += right.live
            left.dead += right.dead
            left.unknown += right.unknown
        }
    }

    struct Row {
        let label: String
        /// One for each column.
        let cells: [Cell]
    }

    static let others = "others"

    /// Names of datasets, the heaviest first, and of the column for all else.
    let columns: [String]
    /// Segments in the order of the survey, and at last the row for those that are left out, if
    /// any are. Empty if there is no dataset.
    let rows: [Row]

    /// - Parameter rowsMax: segments with a row of their own: 1...
    init(_ survey: SpaceSurvey, rowsMax: Int) {
        columns = survey.heaviest + [Self.others]
        guard !survey.heaviest.isEmpty else {
            rows = []
            return
        }
        let segments = survey.segments.filter { $0.contentBytes > 0 }
        let order = segments.indices.sorted {
            (segments[$1].contentBytes, $0) < (segments[$0].contentBytes, $1)
        }
        let shown = Set(order.prefix(rowsMax))
        var chosen: [Row] = []
        var rest = [Cell](repeating: Cell(), count: columns.count)
        for (index, segment) in segments.enumerated() {
            let cells = segment.portions.map { Cell($0) }
            if shown.contains(index) {
                chosen.append(Row(label: segment.file, cells: cells))
            } else {
                for (column, cell) in cells.enumerated() { rest[column] += cell }
            }
        }
        let leftOut = segments.count - shown.count
        if leftOut > 0 {
            chosen.append(
                Row(label: "\(Self.others) (\(Quantities.grouped(leftOut)))", cells: rest))
        }
        rows = chosen
    }

    /// Whether there is something of which nothing was looked at.
    var hasUnknown: Bool { rows.contains { $0.cells.contains { $0.unknown > 0 } } }

    /// Of the fullest cell.
    var bytesMax: UInt64 { rows.flatMap(\.cells).map(\.all).max() ?? 0 }
}

extension SpaceCrossing.Cell {
    fileprivate init(_ portion: SpaceSurvey.Portion) {
        guard let live = portion.liveBytesEstimate else {
            self.init(unknown: portion.contentBytes)
            return
        }
        let bounded = min(live, portion.contentBytes)
        self.init(live: bounded, dead: portion.contentBytes - bounded)
    }
}
