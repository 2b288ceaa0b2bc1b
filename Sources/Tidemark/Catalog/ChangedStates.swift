/// The states of the datasets that changed in a log, as of its end. Holds the states themselves,
/// too, so that the catalog cannot let them go before these bytes are in a sealed segment.
struct ChangedStates {
    private struct Row {
        let state: DatasetState
        /// The number of the dataset's records if the log gave it to them, else 0.
        let newNumber: DatasetID
        /// Where its bytes end; they begin where those of the row before end.
        let end: Int
    }

    private var rows: [Row] = []
    private var bytes = ByteWriter()

    /// Under the store's writer lock, which is why it does no more than it must.
    init(_ states: [DatasetState]) {
        rows.reserveCapacity(states.count)
        for state in states {
            state.encode(into: &bytes)
            rows.append(
                Row(
                    state: state, newNumber: state.isNumberNew ? state.recordsID : 0,
                    end: bytes.count))
            state.isNumberNew = false
        }
    }

    /// Writes them as the store's own records, which come first in the order of entries: numbers
    /// with their names, then names with their states.
    func write(to writer: SegmentRunWriter, log: UInt64) throws(StoreError) {
        let numbered = rows.filter { $0.newNumber != 0 }.sorted { $0.newNumber < $1.newNumber }
        for row in numbered {
            try Self.add(
                StoreRecords.key(ofNumber: row.newNumber), Array(row.state.name.utf8)[...],
                to: writer, log)
        }
        var order = Array(rows.indices)
        order.sort { rows[$0].state.name < rows[$1].state.name }
        for index in order {
            let start = index == 0 ? 0 : rows[index - 1].end
            try Self.add(
                Array(rows[index].state.name.utf8), bytes.bytes[start..<rows[index].end],
                to: writer, log)
        }
    }

    private static func add(
        _ key: [UInt8], _ value: ArraySlice<UInt8>, to writer: SegmentRunWriter, _ log: UInt64
    ) throws(StoreError) {
        try key.withBytes { (key) throws(StoreError) in
            try Array(value).withBytes { (value) throws(StoreError) in
                try writer.segment().add(storeRecord: key, value: value, log: log)
            }
        }
    }
}
