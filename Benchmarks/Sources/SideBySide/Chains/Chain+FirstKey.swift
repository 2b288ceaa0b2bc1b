import Foundation

// The first key of a store whose front half was deleted, in the order of keys: what a queue does,
// or a log that is cut at its beginning. An engine that only notes deletions passes over all of
// the notes to find it.
extension Chain {
    func runFirstKey() throws {
        let live = count / 2..<count
        let fresh = try inStore("fresh") { engine, session -> Recorder in
            try putRest(session, Array(live))
            try engine.settle()
            return try seekFirst(session, live)
        }
        // At once, and when the background work that deleting left is done.
        let (deleted, settled) = try inStore("deleted") {
            engine, session -> (Recorder, Recorder) in
            try putRest(session, Array(0..<count))
            try engine.settle()
            try removeBatches(session, upTo: live.lowerBound)
            let deleted = try seekFirst(session, live)
            try engine.settle()
            return (deleted, try seekFirst(session, live))
        }
        for (recorder, workload) in [(deleted, "first-key"), (fresh, "first-key-fresh")] {
            var sample = recorder.sample(workload, wanted: nil, hasTimeline: false)
            sample.records = live.count
            report(sample)
        }
        report(
            Sample(
                workload: "first-key-slowdown", valueBytes: 0, records: live.count,
                value: deleted.secondsEach / fresh.secondsEach, unit: "ratio",
                more: ["settled": settled.secondsEach / fresh.secondsEach]))
    }

    private func inStore<Result>(
        _ name: String, _ body: (Kind.Opened, S) throws -> Result
    ) throws -> Result {
        var place = options
        place.directory += "/\(name)"
        try FileManager.default.createDirectory(
            atPath: place.directory, withIntermediateDirectories: true)
        let engine = try kind.open(place)
        let result = try engine.withSession { try body(engine, $0) }
        try engine.close()
        return result
    }

    /// Deletes the first records in the order of keys, in atomic batches of 1,000.
    private func removeBatches(_ session: S, upTo end: Int) throws {
        let size = 1000
        let keys = UnsafeMutableRawBufferPointer.allocate(
            byteCount: size * Keys.bytes, alignment: 16)
        defer { keys.deallocate() }
        for start in stride(from: 0, to: end, by: size) {
            let taken = min(size, end - start)
            for place in 0..<taken {
                Keys.write(start + place, to: keys.baseAddress! + place * Keys.bytes)
            }
            try session.removeBatch(
                keys: UnsafeRawBufferPointer(rebasing: keys[..<(taken * Keys.bytes)]))
        }
    }

    /// Reads the first record again and again, from an iterator or transaction of its own each
    /// time, until the time is over.
    private func seekFirst(_ session: S, _ live: Range<Int>) throws -> Recorder {
        let expected = values[live.lowerBound].loadUnaligned(as: UInt64.self)
        var recorder = Recorder(seconds: scale.readSeconds)
        repeat {
            let seen = try session.scan(from: nil, prefixBytes: 0, limit: 1)
            guard seen.records == 1, seen.checksum == expected else {
                throw EngineFailure("\(kind.name): the first key is not the first that is left")
            }
        } while recorder.tick()
        return recorder
    }
}
