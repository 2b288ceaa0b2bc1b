/// A cursor over one source of entries.
enum SourceCursor {
    case memtable(MemtableCursor)
    case segment(SegmentCursor)

    var entry: Entry? {
        switch self {
        case .memtable(let cursor): cursor.entry
        case .segment(let cursor): cursor.entry
        }
    }

    var tables: VersionTables {
        switch self {
        case .memtable(let cursor): cursor.tables
        case .segment(let cursor): cursor.tables
        }
    }

    mutating func seek(to position: EntryPosition) throws(StoreError) {
        switch self {
        case .memtable(var cursor):
            cursor.seek(to: position)
            self = .memtable(cursor)
        case .segment(var cursor):
            try cursor.seek(to: position)
            self = .segment(cursor)
        }
    }

    mutating func seek(before position: EntryPosition) throws(StoreError) {
        switch self {
        case .memtable(var cursor):
            cursor.seek(before: position)
            self = .memtable(cursor)
        case .segment(var cursor):
            try cursor.seek(before: position)
            self = .segment(cursor)
        }
    }

    mutating func step(_ order: ScanOrder) throws(StoreError) {
        switch self {
        case .memtable(var cursor):
            order == .forward ? cursor.stepForward() : cursor.stepBack()
            self = .memtable(cursor)
        case .segment(var cursor):
            if order == .forward { try cursor.stepForward() } else { try cursor.stepBack() }
            self = .segment(cursor)
        }
    }
}

/// Walks over the entries of several sources as if they were one, in one direction.
///
/// A linear look at the heads: there are few sources, and a heap costs more than it saves.
struct MergeCursor {
    private var sources: [SourceCursor]
    private let order: ScanOrder
    private var current = -1
    /// nil at the end. Valid until the cursor moves. Kept, since to make it of a block's bytes is
    /// most of what a step costs.
    private(set) var entry: Entry?

    init(_ sources: [SourceCursor], order: ScanOrder) {
        self.sources = sources
        self.order = order
    }

    /// Everything a view shows, memtables first.
    init(
        _ view: ReadView, order: ScanOrder, isCaching: Bool
    ) throws(StoreError) {
        var sources: [SourceCursor] = []
        for memtable in view.memtables {
            sources.append(.memtable(MemtableCursor(memtable)))
        }
        for segment in view.segments {
            sources.append(.segment(try SegmentCursor(segment, isCaching: isCaching)))
        }
        self.init(sources, order: order)
    }

    /// Forward: to the first entry at or after the position. Backward: to the last before it.
    mutating func seek(_ position: EntryPosition) throws(StoreError) {
        for index in sources.indices {
            if order == .forward {
                try sources[index].seek(to: position)
            } else {
                try sources[index].seek(before: position)
            }
        }
        choose()
    }

    /// The tables of the source of the current entry.
    var tables: VersionTables { sources[current].tables }

    mutating func advance() throws(StoreError) {
        guard current >= 0 else { return }
        try sources[current].step(order)
        choose()
    }

    private mutating func choose() {
        current = -1
        var best: Entry?
        for index in sources.indices {
            guard let entry = sources[index].entry else { continue }
            if let chosen = best {
                let difference = entry.position.compare(chosen.position)
                guard order == .forward ? difference < 0 : difference > 0 else { continue }
            }
            best = entry
            current = index
        }
        entry = best
    }
}
