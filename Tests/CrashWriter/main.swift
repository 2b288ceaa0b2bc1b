// Writes into a store until it is killed, and tells on standard output which writes were
// acknowledged: for each, its number as eight little-endian bytes.
//
//     CrashWriter DIRECTORY process|disk SEED FIRST-NUMBER
//     CrashWriter DIRECTORY stamps FIRST-NUMBER           the batches of `StampStream`
//     CrashWriter DIRECTORY churn LIMIT RECORDS           ends by itself; see `MemoryChurn`
//
// Segments are as small as they may be, so that sealing and compaction happen all the time.

import Glibc
import Tidemark

func complain(_ text: String) {
    let line = Array((text + "\n").utf8)
    _ = unsafe line.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// Straight to the descriptor: what a buffer held back would look like an acknowledgement lost.
func acknowledge(_ number: UInt64) -> Bool {
    var littleEndian = number.littleEndian
    let count = unsafe withUnsafeBytes(of: &littleEndian) {
        unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count)
    }
    return count == MemoryLayout<UInt64>.size
}

func perform(
    _ changes: [WriteStream.Change], in datasets: [String: Dataset], of store: Store
) throws {
    guard let first = changes.first else { return }
    if changes.count == 1, let dataset = datasets[first.dataset] {
        if let value = first.value {
            try dataset.put(value, for: first.key)
        } else {
            try dataset.delete(first.key)
        }
        return
    }
    var batch = WriteBatch()
    for change in changes {
        guard let dataset = datasets[change.dataset] else { continue }
        if let value = change.value {
            batch.put(value, for: change.key, in: dataset)
        } else {
            batch.delete(change.key, in: dataset)
        }
    }
    try store.write(batch)
}

func run(_ arguments: [String]) throws -> Int32 {
    if arguments.count == 4, arguments[2] == "stamps", let first = UInt64(arguments[3]) {
        try StampStream.write(to: arguments[1], from: first)
        return 0
    }
    if arguments.count == 5, arguments[2] == "churn", let limit = Int(arguments[3]),
        let count = Int(arguments[4])
    {
        try MemoryChurn.run(at: arguments[1], limit: limit, recordCount: count)
        return 0
    }
    guard arguments.count == 5, let durability = Durability(rawValue: arguments[2]),
        let seed = UInt64(arguments[3]), var number = UInt64(arguments[4])
    else {
        complain("usage: CrashWriter DIRECTORY process|disk SEED FIRST-NUMBER")
        return 2
    }
    let store = try Store.open(
        at: arguments[1], options: StoreOptions(durability: durability, segmentBytes: 1 << 20))
    var datasets: [String: Dataset] = [:]
    for name in WriteStream.datasetNames { datasets[name] = try store.dataset(name) }
    let stream = WriteStream(seed: seed)
    while true {
        try perform(stream.changes(of: number), in: datasets, of: store)
        guard acknowledge(number) else { return 0 }
        number += 1
    }
}

do {
    exit(try run(CommandLine.arguments))
} catch {
    complain("\(error)")
    exit(1)
}
