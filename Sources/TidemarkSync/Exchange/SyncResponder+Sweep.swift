import Tidemark

// Changes in the order of their keys, for an asker that lacks much of what is here.
//
// As with a search for differences, nothing is kept between requests: the asker says with which key
// to go on, and is told with each page what was seen here at its moment. None of these requests
// says that the asker has anything; that, its next pull or push does.

extension SyncResponder {
    func answer(to request: SweepRequest) throws(SyncError) -> SweepAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        let isRemembered = request.address.from != .nobody
        if isRemembered {
            let asker = request.asker
            try checkForks(
                asker.vector, asker.batons, known: asker.disputed, dataset, request.address)
        }
        return try engine(dataset.name) { () throws(StoreError) in
            if isRemembered { try meet(request.address.from, dataset) }
            let recordsMax = min(request.recordsMax, limits.pageRecordsMax)
            // No record that is held is among them.
            let claim = try dataset.vectorWithoutHeld()
            let (page, next) = try dataset.writtenPage(
                from: request.start.isEmpty ? nil : request.start, since: request.since,
                recordsMax: dataset.recordsPerPage(atMost: recordsMax),
                bytesMax: min(max(1, request.bytesMax), limits.pageBytesMax),
                excluding: request.asker.vector,
                scannedMax: (records: limits.sweptRecordsMax, bytes: limits.sweptBytesMax))
            var told = try dataset.told(page, isDrawing: isRemembered)
            // As with a pull.
            let hasLeftOut = try FailedBook(dataset, .outgoing).holdsBack(
                from: request.address.from)
            told.knowledge.vector = hasLeftOut ? VersionVector() : claim
            if isRemembered { try store.syncBeforeSending() }
            return SweepAnswer(page: told, next: next)
        }
    }
}
