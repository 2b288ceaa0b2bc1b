internal import Synchronization

/// Does everything that reads to a deformed store. A trap, a hang and a read outside of what was
/// read in are found by the fuzzer itself; what is checked here is that `verify` is right: where
/// it finds nothing, nothing may be found damaged later, and all ways to read must agree.
struct Exercise {
    private let files: [String: [UInt8]]
    private let writes: Bool
    /// Whether the store is whole but for one segment: then verification must find all there is.
    private let isSegmentAlone: Bool
    private let path: String

    init(_ files: [String: [UInt8]], writes: Bool, isSegmentAlone: Bool, path: String) {
        self.files = files
        self.writes = writes
        self.isSegmentAlone = isSegmentAlone
        self.path = path
    }

    func run() {
        let isClean = verify()
        do throws(StoreError) {
            var options = BaseStore.options(.none, history: 1)
            options.isReadOnly = true
            let store = try Store.open(
                at: BaseStore.directory, options: options, storage: MemoryStorage(files))
            try read(store, agrees: isClean && isSegmentAlone)
            _ = try store.verify(threads: 1)
            try store.close()
        } catch {
            check(error, isClean: isClean)
        }
        guard writes else { return }
        do throws(StoreError) {
            try write()
        } catch {
            check(error, isClean: isClean)
        }
    }

    private func verify() -> Bool {
        do throws(StoreError) {
            let report = try Verifier.check(
                storeAt: BaseStore.directory, storage: MemoryStorage(files), threads: 1,
                progress: nil)
            return report.damages.isEmpty
        } catch {
            check(error, isClean: false)
            return false
        }
    }

    private func check(_ error: StoreError, isClean: Bool) {
        if isClean, isSegmentAlone, error.code == .corruption {
            fatalError("verification found nothing wrong, reading did: \(error)")
        }
        let expected: [StoreError.Code] = [
            .corruption, .notAStore, .formatTooNew, .formatTooOld, .datasetNotFound,
            .changesExpired,
            .writerStopped, .versionMismatch, .invalidArgument, .diskFull,
        ]
        precondition(expected.contains(error.code), "an error of another kind: \(error)")
    }

    /// - Parameter agrees: whether all ways to read the same must give the same.
    private func read(_ store: Store, agrees: Bool) throws(StoreError) {
        _ = try store.statistics()
        for dataset in try store.datasets() {
            let forward = try dataset.records(includingDeleted: true).collect()
            let backward = try dataset.records(order: .backward, includingDeleted: true).collect()
            precondition(
                !agrees || forward.map(\.key) == backward.reversed().map(\.key),
                "a scan backwards differs from one forwards")
            for record in forward.prefix(200) {
                let found = try dataset.record(for: record.key, includingDeleted: true)
                precondition(
                    !agrees
                        || (found?.version.dot == record.version.dot
                            && found?.value == record.value),
                    "a record found by a scan and by its key differ")
                _ = try dataset.history(of: record.key)
            }
            for number in 0..<64 { _ = try dataset.get(BaseStore.key(number)) }
            for number in 0..<8 {
                _ = try dataset.records(in: .prefix(BaseStore.key(number))).collect()
            }
            for since in [0, 1, 30, 61] as [UInt64] {
                try readChanges(dataset, since: since, of: agrees ? forward : nil)
            }
            _ = try dataset.digest()
        }
    }

    private func readChanges(
        _ dataset: Dataset, since: UInt64, of records: [Record]?
    ) throws(StoreError) {
        let changed: [Record]
        do {
            changed = try dataset.changes(since: SyncCount(rawValue: since)).collect()
        } catch let error where error.code == .changesExpired {
            return
        }
        guard let records else { return }
        let expected = records.filter { $0.syncCount.rawValue > since }
            .sorted { $0.syncCount < $1.syncCount }
        precondition(
            changed.map(\.key) == expected.map(\.key), "the changes differ from what a scan gives")
    }

    private func write() throws(StoreError) {
        let storage = MemoryStorage(files)
        let store = try Store.open(
            at: BaseStore.directory, options: BaseStore.options(.lz4, history: 1),
            storage: storage)
        for name in BaseStore.datasets {
            let dataset = try store.dataset(name)
            try dataset.put([1, 2, 3], for: [9])
            try dataset.delete(BaseStore.key(3))
        }
        try store.compact()
        _ = try store.verify(threads: 1)
        _ = try store.deleteDataset("second")
        try store.close()
        let again = try Store.open(
            at: BaseStore.directory, options: BaseStore.options(.lz4, history: 1),
            storage: storage)
        let found = try again.dataset("first").get([9])
        precondition(found == [1, 2, 3], "a write is gone")
        try again.close()
    }
}
