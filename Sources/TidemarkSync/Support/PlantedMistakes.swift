import Tidemark

// Where an exchange goes wrong on purpose: see `PlantedBugs`. In a release build each question is
// answered when it is compiled, and what would follow is not there.

extension Store {
    /// Whether a mistake is to be made.
    @inline(__always)
    func has(_ mistake: @autoclosure () -> PlantedBugs) -> Bool {
        #if PLANTED_BUGS
        options.plantedBugs.contains(mistake())
        #else
        false
        #endif
    }

    /// What a peer is told of may be acted upon there, so it must not be lost here any more.
    func syncBeforeSending() throws(StoreError) {
        if !has(.skipSyncBeforeSend) { try sync() }
    }

    /// Whether what the peer has seen is joined into what this store has: once all of it has come.
    func joinsVector(atEnd isLast: Bool = true) -> Bool {
        (isLast || has(.joinVectorWithFirstPage)) && !has(.skipVectorJoin)
    }

    /// Whether a mistake is to be made that is made with single records.
    var mergesRecordByRecord: Bool {
        has(.checkpointApartFromRecords) || has(.applyPageTwice) || has(.applyConflictUnasked)
    }
}
