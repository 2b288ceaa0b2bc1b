import Tidemark

extension MicroCase {
    static let writing: [MicroCase] = [
        // Over records that are there: the memtable keeps all versions, so a put costs the same as
        // a new key does.
        MicroCase("put", isWriting: true, prepare: memtable) { fixture, count in
            let (keyBytes, valueBytes) = (fixture.keys, fixture.value)
            let keys = keyBytes.span.bytes
            let value = valueBytes.span.bytes
            for number in 0..<count {
                try fixture.dataset.put(value, for: keys.extracting(fixture.place(number)))
            }
        },
        MicroCase("put-array", isWriting: true, prepare: memtable) { fixture, count in
            let key = fixture.key
            for _ in 0..<count {
                try fixture.dataset.put(fixture.value, for: key)
            }
        },
        // Small segments, so that a few are sealed in every round; it ends when they are. What the
        // sealing thread allocates counts as well.
        MicroCase(
            "put-sealing", isWriting: true, operationCount: 100_000, countsAllThreads: true,
            prepare: {
                try Fixture(recordCount: $0, placement: .memtable, segmentBytes: 8 << 20)
            }
        ) { fixture, count in
            let (keyBytes, valueBytes) = (fixture.keys, fixture.value)
            let keys = keyBytes.span.bytes
            let value = valueBytes.span.bytes
            for number in 0..<count {
                try fixture.dataset.put(value, for: keys.extracting(fixture.place(number)))
            }
            try fixture.store.waitForBackgroundWork()
        },
        MicroCase("delete", isWriting: true, prepare: memtable) { fixture, count in
            let bytes = fixture.keys
            let keys = bytes.span.bytes
            for number in 0..<count {
                try fixture.dataset.delete(keys.extracting(fixture.place(number)))
            }
        },
        // One operation is a whole batch of a hundred, from filling it to its being in the log.
        MicroCase(
            "batch-100", isWriting: true, operationCount: 400, prepare: memtable
        ) { fixture, count in
            let (keyBytes, valueBytes) = (fixture.keys, fixture.value)
            let keys = keyBytes.span.bytes
            let value = valueBytes.span.bytes
            var batch = WriteBatch()
            for number in 0..<count {
                batch.removeAll(keepingCapacity: true)
                for place in 0..<100 {
                    let key = keys.extracting(fixture.place(100 * number + place))
                    batch.put(value, for: key, in: fixture.dataset)
                }
                try fixture.store.write(batch)
            }
        },
    ]

    @Sendable
    static func memtable(_ recordCount: Int) throws -> Fixture {
        try Fixture(recordCount: recordCount, placement: .memtable)
    }

    @Sendable
    static func sealed(_ recordCount: Int) throws -> Fixture {
        try Fixture(recordCount: recordCount, placement: .sealed)
    }
}
