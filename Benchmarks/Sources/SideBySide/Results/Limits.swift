import BenchmarkRows
import CLimits
import CTicks
import Foundation

/// The physical limits, measured as rows of an engine of their own.
struct Limits {
    static let engine = "limit"

    private var figures: [String: [Int: [(rate: Double, bytes: Double)]]] = [:]
    private var what: [String: String] = [:]
    private var names: [String] = []

    /// Measures each limit once more.
    mutating func measure(in directory: String, seconds: Double, values: Values) throws {
        measureDriver(seconds: seconds, values: values)
        var place = 0
        while true {
            let limit = limitTable[place]
            guard let cName = limit.name else { return }
            let name = String(cString: cName)
            what[name] = String(cString: limit.what)
            for size in [limit.sizes.0, limit.sizes.1, limit.sizes.2, limit.sizes.3] {
                guard size > 0 || size == limit.sizes.0 else { break }
                let result = limit.run(
                    directory, size, seconds, values.all.baseAddress, values.all.count)
                guard result.operations > 0, result.seconds > 0 else {
                    var error = result.error
                    let text = withUnsafeBytes(of: &error) {
                        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                    }
                    throw EngineFailure("limit \(name): \(text)")
                }
                add(
                    name, size, Double(result.operations) / result.seconds,
                    Double(result.bytes) / result.seconds)
            }
            place += 1
        }
    }

    private var limitTable: UnsafePointer<limit_api> { limit_table() }

    /// What the driver itself costs an operation: a key, a value, and a reading of the clock.
    private mutating func measureDriver(seconds: Double, values: Values) {
        let permutation = Permutation(of: 1_000_000, seed: 1)
        var checksum: UInt64 = 0
        withUnsafeTemporaryAllocation(byteCount: Keys.bytes, alignment: 16) { key in
            var recorder = Recorder(seconds: seconds)
            var index = 0
            repeat {
                if index == permutation.count { index = 0 }
                let number = permutation[index]
                index += 1
                Keys.write(number, to: key.baseAddress!)
                checksum &+= key.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
                checksum &+= values[number].loadUnaligned(as: UInt64.self)
            } while recorder.tick()
            add("driver", 0, Double(recorder.operations) / recorder.seconds, 0)
        }
        consume(checksum)
        what["driver"] = "The driver's own work for each operation: key, value, clock."
    }

    private mutating func add(_ name: String, _ size: Int, _ rate: Double, _ bytes: Double) {
        if figures[name] == nil { names.append(name) }
        figures[name, default: [:]][size, default: []].append((rate, bytes))
    }

    func rows() -> [Row] {
        names.flatMap { name in
            (figures[name] ?? [:]).sorted { $0.key < $1.key }.map { size, rounds in
                var row = Row(engine: Self.engine, config: "-", workload: name)
                row.valueBytes = size
                row.setRounds(rounds.map(\.rate))
                let bytes = Row.median(rounds.map(\.bytes))
                row.extra.bytesPerS = bytes > 0 ? bytes : nil
                row.extra.what = what[name]
                return row
            }
        }
    }
}
