/// Real stores, made by the engine itself at the start of a run, which inputs then deform.
struct BaseStore: Sendable {
    static let directory = "/store"
    static let datasets = ["first", "second", "emptied"]

    let files: [String: [UInt8]]

    static let all: [BaseStore] = [
        make(.none, history: 0), make(.lz4, history: 0), make(.none, history: 3),
        make(.lz4, history: 1),
    ]

    static func options(_ compression: Compression, history: Int) -> StoreOptions {
        StoreOptions(
            durability: .process, segmentBytes: 1 << 20, blockCacheBytes: 40_000,
            historyVersions: history, compactsAutomatically: false, compression: compression,
            largeValueBytes: history > 0 ? 100 : 4_096)
    }

    static func key(_ number: Int) -> [UInt8] { Array("key/\(number % 7)/\(number)".utf8) }

    private static func make(_ compression: Compression, history: Int) -> BaseStore {
        let storage = MemoryStorage()
        do throws(StoreError) {
            let store = try Store.open(
                at: directory, options: options(compression, history: history), storage: storage)
            let first = try store.dataset("first")
            let second = try store.dataset("second")
            for number in 0..<60 {
                let value = [UInt8](repeating: UInt8(number), count: number % 9 * 30)
                try first.put(value, for: key(number))
                if number % 4 == 0 { try second.put(key(number), for: key(number + 1)) }
            }
            try first.put([UInt8](repeating: 7, count: 9_000), for: Array("large".utf8))
            try store.compact()
            for number in 0..<20 {
                try first.put([UInt8(number)], for: key(number))
                if number % 5 == 0 { try first.delete(key(number + 30)) }
            }
            try store.dataset("emptied").put([1], for: [1])
            if history > 0 { try store.compact() }
            try store.deleteDataset("emptied")
            try second.delete(key(1))
            var batch = WriteBatch()
            for number in 0..<5 { batch.put([2], for: key(number), in: second) }
            try store.write(batch)
            try store.close()
        } catch {
            fatalError("cannot make a base store: \(error)")
        }
        return BaseStore(files: storage.files)
    }

    func path(ending: String) -> [String] { files.keys.filter { $0.hasSuffix(ending) }.sorted() }
}
