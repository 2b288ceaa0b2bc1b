import Foundation

/// In which order records are written or read.
enum RecordOrder {
    case ascending
    case listed([Int])
    case random(Permutation)

    @inline(__always)
    subscript(index: Int) -> Int {
        switch self {
        case .ascending: index
        case .listed(let numbers): numbers[index]
        case .random(let permutation): permutation[index]
        }
    }

    var isAscending: Bool {
        if case .ascending = self { true } else { false }
    }
}

// The loops themselves: generic over the session, so that each engine gets its own.
extension Chain {
    typealias S = Kind.Opened.EngineSession

    func random(seed: UInt64) -> RecordOrder {
        .random(Permutation(of: count, seed: seed))
    }

    /// Puts all records one by one.
    func put(
        _ session: S, _ order: RecordOrder, version: Int, isNew: Bool, seconds: Double
    ) throws -> Recorder {
        let ascending = order.isAscending && isNew
        return try withKey { key in
            var recorder = Recorder(seconds: seconds)
            for index in 0..<count {
                let number = order[index]
                Keys.write(number, to: key.baseAddress!)
                try session.put(
                    UnsafeRawBufferPointer(key), values[number, version], ascending: ascending)
                guard recorder.tick() else { break }
            }
            return recorder
        }
    }

    /// Deletes all records one by one.
    func remove(_ session: S, _ order: RecordOrder, seconds: Double) throws -> Recorder {
        try withKey { key in
            var recorder = Recorder(seconds: seconds)
            for index in 0..<count {
                Keys.write(order[index], to: key.baseAddress!)
                try session.remove(UnsafeRawBufferPointer(key))
                guard recorder.tick() else { break }
            }
            return recorder
        }
    }

    /// Puts records in atomic batches; one tick is one batch.
    func putBatches(
        _ session: S, _ order: RecordOrder, upTo count: Int, of size: Int, seconds: Double?
    ) throws -> Recorder {
        let keys = UnsafeMutableRawBufferPointer.allocate(
            byteCount: size * Keys.bytes, alignment: 16)
        defer { keys.deallocate() }
        var batch: [UnsafeRawBufferPointer] = []
        batch.reserveCapacity(size)
        var recorder = Recorder(seconds: seconds)
        var start = 0
        while start < count {
            let end = min(start + size, count)
            batch.removeAll(keepingCapacity: true)
            for index in start..<end {
                let number = order[index]
                Keys.write(number, to: keys.baseAddress! + (index - start) * Keys.bytes)
                batch.append(values[number])
            }
            let taken = UnsafeRawBufferPointer(rebasing: keys[..<((end - start) * Keys.bytes)])
            try session.writeBatch(keys: taken, values: batch, ascending: order.isAscending)
            start = end
            guard recorder.tick() else { break }
        }
        return recorder
    }

    /// Puts the listed records in batches, outside any clock.
    func putRest(_ session: S, _ numbers: [Int]) throws {
        _ = try putBatches(
            session, .listed(numbers), upTo: numbers.count, of: 1000, seconds: nil)
    }

    /// Reads single records until the time is over.
    func get(
        _ session: S, _ order: RecordOrder, from first: Int = 0, isMissing: Bool = false,
        seconds: Double
    ) throws -> Recorder {
        try withKey { key in
            var recorder = Recorder(seconds: seconds)
            var checksum: UInt64 = 0
            var index = first
            let expected = isMissing ? nil : values.bytes
            repeat {
                if index == count { index = 0 }
                Keys.write(order[index], lastDigit: isMissing ? 5 : 0, to: key.baseAddress!)
                index += 1
                let bytes = try session.get(UnsafeRawBufferPointer(key), checksum: &checksum)
                guard bytes == expected else { throw unexpected(key, bytes, expected) }
            } while recorder.tick()
            consume(checksum)
            return recorder
        }
    }

    /// Seeks to random records and reads on from there until the time is over.
    /// - Parameter prefixBytes: if not 0, only records whose keys begin like the one sought.
    func seek(
        _ session: S, _ order: RecordOrder, prefixBytes: Int, limit: Int, seconds: Double
    ) throws -> Recorder {
        try withKey { key in
            var recorder = Recorder(seconds: seconds)
            var checksum: UInt64 = 0
            var index = 0
            repeat {
                if index == count { index = 0 }
                let number = order[index]
                index += 1
                Keys.write(number, to: key.baseAddress!)
                // The last record is the one with the greatest number.
                let expected: Int
                if prefixBytes == 0 {
                    expected = min(limit, count - number)
                } else {
                    // All records whose numbers differ in the last digits only: from this one on.
                    let group = powerOfTen(Keys.bytes - 1 - prefixBytes)
                    expected = min(group - number % group, count - number)
                }
                let seen = try session.scan(
                    from: UnsafeRawBufferPointer(key), prefixBytes: prefixBytes, limit: limit)
                guard seen.records == expected else {
                    throw EngineFailure(
                        "\(kind.name): a scan gave \(seen.records) records, not \(expected)")
                }
                checksum &+= seen.checksum
            } while recorder.tick()
            consume(checksum)
            return recorder
        }
    }

    /// Reads and overwrites zipfian records until the time is over.
    /// - Parameter readShare: 0...1.
    func mix(
        _ session: S, _ draws: [UInt32], readShare: Double, seed: UInt64, seconds: Double
    ) throws -> Recorder {
        let threshold = UInt64(readShare * 0x1p32)
        return try withKey { key in
            var random = SplitMix(seed: seed)
            var recorder = Recorder(seconds: seconds)
            var checksum: UInt64 = 0
            var index = 0
            var version = 1
            repeat {
                if index == draws.count { index = 0 }
                let number = Int(draws[index])
                index += 1
                Keys.write(number, to: key.baseAddress!)
                if random.next() >> 32 < threshold {
                    let bytes = try session.get(UnsafeRawBufferPointer(key), checksum: &checksum)
                    guard bytes == values.bytes else {
                        throw unexpected(key, bytes, values.bytes)
                    }
                } else {
                    version += 1
                    try session.put(
                        UnsafeRawBufferPointer(key), values[number, version], ascending: false)
                }
            } while recorder.tick()
            consume(checksum)
            return recorder
        }
    }

    /// Reads a sample of the records back and compares every byte.
    func verify(_ session: S, version: Int, records: Int, order: RecordOrder) throws {
        let value = UnsafeMutableRawBufferPointer.allocate(
            byteCount: values.bytes + 1, alignment: 16)
        defer { value.deallocate() }
        try withKey { key in
            let step = max(1, records / 1000)
            for index in stride(from: 0, to: records, by: step) {
                let number = order[index]
                Keys.write(number, to: key.baseAddress!)
                let bytes = try session.read(UnsafeRawBufferPointer(key), to: value)
                guard let bytes, value[..<bytes].elementsEqual(values[number, version]) else {
                    throw EngineFailure(
                        "\(kind.name): record \(number) was not read as it was written")
                }
            }
        }
    }

    private func unexpected(
        _ key: UnsafeMutableRawBufferPointer, _ bytes: Int?, _ expected: Int?
    ) -> EngineFailure {
        let text = String(decoding: key, as: UTF8.self)
        func said(_ bytes: Int?) -> String { bytes.map { "\($0) bytes" } ?? "nothing" }
        return EngineFailure(
            "\(kind.name): reading \(text) gave \(said(bytes)) instead of \(said(expected))")
    }

    private func withKey<Result>(
        _ body: (UnsafeMutableRawBufferPointer) throws -> Result
    ) rethrows -> Result {
        try withUnsafeTemporaryAllocation(byteCount: Keys.bytes, alignment: 16, body)
    }
}

func powerOfTen(_ exponent: Int) -> Int {
    (0..<exponent).reduce(1) { power, _ in power * 10 }
}

/// Keeps the compiler from leaving out what led to a value.
@inline(never)
func consume(_ value: UInt64) {
    withExtendedLifetime(value) {}
}
