import CTicks
import Foundation

// The first key of a store whose front half was deleted, in the order of keys: what a queue does,
// or a log that is cut at its beginning. An engine that only notes deletions passes over all of
// the notes to find it: each time, or once if it remembers where they end. So the first time is a
// row of its own.
extension Chain {
    func runFirstKey() throws {
        let live = count / 2..<count
        let fresh = try inStore("fresh") { engine, session -> Recorder in
            try putRest(session, Array(live))
            try engine.settle()
            return try seekFirst(session, live)
        }
        // At once, from the second time on, and when the work that deleting left behind is done.
        let (once, deleted, settled) = try inStore("deleted") {
            engine, session -> (Double, Recorder, Recorder) in
            try putRest(session, Array(0..<count))
            try engine.settle()
            try removeBatches(session, upTo: live.lowerBound)
            let once = try seekFirstOnce(session, live)
            let deleted = try seekFirst(session, live)
            try engine.settle()
            return (once, deleted, try seekFirst(session, live))
        }
        report(
            Sample(
                workload: "first-key-once", valueBytes: 0, records: live.count, value: once,
                unit: "s"))
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
        let expected = firstValue(of: live)
        var recorder = Recorder(seconds: scale.readSeconds)
        repeat { try readFirst(session, expected) } while recorder.tick()
        return recorder
    }

    /// The same once. Returns the seconds.
    private func seekFirstOnce(_ session: S, _ live: Range<Int>) throws -> Double {
        let expected = firstValue(of: live)
        let start = ticks_nanoseconds()
        try readFirst(session, expected)
        return Double(ticks_nanoseconds() - start) / 1e9
    }

    /// The first bytes of the first value that is left.
    private func firstValue(of live: Range<Int>) -> UInt64 {
        values[live.lowerBound].loadUnaligned(as: UInt64.self)
    }

    @inline(__always)
    private func readFirst(_ session: S, _ expected: UInt64) throws {
        let seen = try session.scan(from: nil, prefixBytes: 0, limit: 1)
        guard seen.records == 1, seen.checksum == expected else {
            throw EngineFailure("\(kind.name): the first key is not the first that is left")
        }
    }
}
