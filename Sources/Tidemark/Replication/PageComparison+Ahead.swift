extension PageComparison {
    /// What a search looks at first, second and last is fetched from memory while so many records
    /// before are compared: each step is told by the one before, which must have come by then.
    private static let searchedAhead = (first: 18, node: 12, entry: 6)

    /// Has the processor fetch what the searches for the records behind one will look at.
    @inline(__always)
    func fetch(
        ahead index: Int, of hashes: [UInt64], in view: ReadView, _ id: DatasetID, _ all: ByteView
    ) {
        let first = index + Self.searchedAhead.first
        if first < hashes.count {
            let key = MergePage.key(of: page.items[first], in: all)
            view.prefetch(key, in: id, hash: hashes[first])
        }
        let node = index + Self.searchedAhead.node
        if node < hashes.count { view.prefetchNode(hash: hashes[node]) }
        let entry = index + Self.searchedAhead.entry
        if entry < hashes.count {
            let key = MergePage.key(of: page.items[entry], in: all)
            view.prefetchEntry(of: key, in: id, hash: hashes[entry])
        }
    }
}
