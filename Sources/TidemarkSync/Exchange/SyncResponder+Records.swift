import Tidemark

// Records by their keys, for an asker that left them out before and whose position is past them.

extension SyncResponder {
    func answer(to request: RecordsRequest) throws(SyncError) -> RecordsAnswer {
        try check(request.address)
        let dataset = try wholeDataset(request.address.dataset, creating: false)
        let isRemembered = request.address.from != .nobody
        if isRemembered {
            try checkForks(
                VersionVector(), [], known: request.disputed, dataset, request.address)
        }
        return try engine(dataset.name) { () throws(StoreError) -> RecordsAnswer in
            let bytesMax = min(max(1, request.bytesMax), limits.pageBytesMax)
            let countMax = try dataset.recordsPerPage(atMost: limits.pageRecordsMax)
            // What is held is in none of the records, and is not claimed.
            let claim = try dataset.vectorWithoutHeld()
            var records: [Record] = []
            var (bytes, answered) = (0, 0)
            for key in request.keys {
                let record = try dataset.storedRecord(for: key)
                bytes += key.count + (record?.value?.count ?? 0)
                guard answered == 0 || bytes <= bytesMax && records.count < countMax else { break }
                if let record, !record.isDropped { records.append(record) }
                answered += 1
            }
            let knowledge = try dataset.knowledge()
            let page = RecordPage(
                records: records, through: knowledge.syncCount, isLast: false,
                knowledge: PeerKnowledge(knowledge))
            if isRemembered, !store.options.isReadOnly {
                // That there is the asker must be known before it has anything, as with a pull.
                try dataset.remember(
                    try dataset.checkpoint(for: request.address.from), of: request.address.from)
            }
            var told = try dataset.told(page, isDrawing: isRemembered)
            told.knowledge.vector = claim
            if isRemembered { try store.syncBeforeSending() }
            return RecordsAnswer(answered: answered, page: told)
        }
    }
}
