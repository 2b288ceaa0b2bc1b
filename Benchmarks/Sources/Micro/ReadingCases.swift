import Tidemark

extension MicroCase {
    static let reading: [MicroCase] = [
        MicroCase("get-memtable", prepare: memtable, run: getEach),
        MicroCase("get-sealed", prepare: sealed, run: getEach),
        MicroCase("get-missing", prepare: sealed) { fixture, count in
            let bytes = fixture.missingKeys
            let keys = bytes.span.bytes
            var tally = Tally()
            for number in 0..<count {
                let key = keys.extracting(fixture.place(number))
                tally.add(try fixture.dataset.withValue(for: key) { $0?.byteCount ?? 0 })
            }
            try tally.expect(0)
        },
        MicroCase("get-array", prepare: memtable) { fixture, count in
            let key = fixture.key
            var tally = Tally()
            for _ in 0..<count {
                tally.add(try fixture.dataset.get(key)?.count ?? 0)
            }
            try tally.expect(count * Fixture.valueByteCount)
        },
        // The shortest way through the public interface to reading a block, checking it by XXH3,
        // unpacking it and checking its every field.
        MicroCase(
            "get-uncached", operationCount: 4_000,
            prepare: { try Fixture(recordCount: $0, placement: .uncached) }, run: getEach),
        MicroCase("contains", prepare: sealed) { fixture, count in
            let bytes = fixture.keys
            let keys = bytes.span.bytes
            var tally = Tally()
            for number in 0..<count {
                let key = keys.extracting(fixture.place(number))
                tally.add(try fixture.dataset.contains(key) ? 1 : 0)
            }
            try tally.expect(count)
        },
        MicroCase("contains-missing", prepare: sealed) { fixture, count in
            let bytes = fixture.missingKeys
            let keys = bytes.span.bytes
            var tally = Tally()
            for number in 0..<count {
                let key = keys.extracting(fixture.place(number))
                tally.add(try fixture.dataset.contains(key) ? 1 : 0)
            }
            try tally.expect(0)
        },
    ]

    @Sendable
    private static func getEach(_ fixture: Fixture, _ count: Int) throws {
        let bytes = fixture.keys
        let keys = bytes.span.bytes
        var tally = Tally()
        for number in 0..<count {
            let key = keys.extracting(fixture.place(number))
            tally.add(try fixture.dataset.withValue(for: key) { $0?.byteCount ?? 0 })
        }
        try tally.expect(count * Fixture.valueByteCount)
    }

    static let walking: [MicroCase] = [
        MicroCase("cursor-step", prepare: memtable, run: step),
        MicroCase("cursor-step-sealed", prepare: sealed, run: step),
        // One operation is a cursor, made, moved a thousand times and let go.
        MicroCase("cursor-1000", operationCount: 40, prepare: sealed) { fixture, count in
            for _ in 0..<count {
                let cursor = try fixture.dataset.records()
                var tally = Tally()
                for _ in 0..<min(1_000, fixture.recordCount) {
                    tally.add(try cursor.withNext { _, value in value?.byteCount ?? 0 } ?? 0)
                }
                try tally.expect(min(1_000, fixture.recordCount) * Fixture.valueByteCount)
            }
        },
    ]

    /// One walk from the beginning, and another one where it ends before the count is reached.
    @Sendable
    private static func step(_ fixture: Fixture, _ count: Int) throws {
        var cursor = try fixture.dataset.records()
        var tally = Tally()
        var left = count
        while left > 0 {
            if let count = try cursor.withNext({ _, value in value?.byteCount ?? 0 }) {
                tally.add(count)
                left -= 1
            } else {
                cursor = try fixture.dataset.records()
            }
        }
        try tally.expect(count * Fixture.valueByteCount)
    }
}
