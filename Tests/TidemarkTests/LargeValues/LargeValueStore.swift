import TestSupport
import Testing
import Tidemark

/// Options by which nearly every value of a test lies apart, and nothing is merged unasked.
func apartOptions(_ largeValueBytes: Int = 100) -> StoreOptions {
    var options = quickOptions()
    options.largeValueBytes = largeValueBytes
    options.compactsAutomatically = false
    return options
}

/// A store whose values are made anew from number and round, so that each can be foretold.
struct LargeValueStore {
    let directory: TemporaryDirectory
    private(set) var store: Store
    private(set) var dataset: Dataset
    let valueBytes: Int

    init(valueBytes: Int, options: StoreOptions = apartOptions()) throws {
        directory = try TemporaryDirectory()
        store = try Store.open(at: directory["store"], options: options)
        dataset = try store.dataset("main")
        self.valueBytes = valueBytes
    }

    var path: String { store.path }

    mutating func reopen(_ options: StoreOptions = apartOptions()) throws {
        try store.close()
        store = try Store.open(at: path, options: options)
        dataset = try store.dataset("main")
    }

    func key(_ number: Int) -> [UInt8] { bytes("key \(number)") }

    /// Every other one can be compressed.
    func value(_ number: Int, round: Int = 0) -> [UInt8] {
        var random = SeededGenerator(Seed(UInt64(number * 1_000 + round)))
        return number % 2 == 0
            ? random.bytes(valueBytes) : random.compressibleBytes(valueBytes)
    }

    func put(_ numbers: some Sequence<Int>, round: Int = 0) throws {
        for number in numbers { try dataset.put(value(number, round: round), for: key(number)) }
    }

    var valueFiles: [String] {
        get throws { try Files.list(path).filter { $0.hasSuffix(".val") } }
    }

    /// Bytes of all value files on disk.
    var valueFileBytes: Int {
        get throws { try valueFiles.reduce(0) { try $0 + Files.read("\(path)/\($1)").count } }
    }

    func requireWhole() throws {
        let damages = try store.verify().damages
        try require(damages.isEmpty, "damages: \(damages)")
    }
}
