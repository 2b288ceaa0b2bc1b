import Tidemark

/// Batches that fill a log every few milliseconds, each of which leaves the same number in all of
/// some records, and of which a reader can tell at once whether it sees a whole one.
package enum StampStream {
    package static let datasetName = "stamps"
    package static let stampedCount = 24
    /// How many of the records that are written once are there at a time.
    package static let trailCount: UInt64 = 50

    package static func key(stamped index: Int) -> [UInt8] { Array("stamped \(index)".utf8) }

    package static func key(trail number: UInt64) -> [UInt8] {
        let digits = String(number)
        return Array(("trail " + String(repeating: "0", count: 12 - digits.count) + digits).utf8)
    }

    /// The number, and filling that says the same.
    package static func value(of number: UInt64) -> [UInt8] {
        var value = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 3_000)
        for index in 0..<8 {
            value[index] = UInt8(truncatingIfNeeded: number >> UInt64(8 * index))
        }
        return value
    }

    /// Writes until the reading end of standard output is closed, or it is killed.
    static func write(to directory: String, from first: UInt64) throws {
        let store = try Store.open(
            at: directory, options: StoreOptions(durability: .process, segmentBytes: 1 << 20))
        let dataset = try store.dataset(datasetName)
        var number = first
        repeat {
            let value = value(of: number)
            var batch = WriteBatch()
            for index in 0..<stampedCount {
                batch.put(value, for: key(stamped: index), in: dataset)
            }
            batch.put([1], for: key(trail: number), in: dataset)
            if number > trailCount { batch.delete(key(trail: number - trailCount), in: dataset) }
            try store.write(batch)
            number += 1
        } while acknowledge(number - 1)
    }
}
