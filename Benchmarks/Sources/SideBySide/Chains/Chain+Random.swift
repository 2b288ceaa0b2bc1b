import CTicks
import Foundation

// Random keys one by one into a fresh store, and all that needs a full one.
extension Chain {
    func runRandom() throws {
        let sampler = MemorySampler()
        defer { sampler.stop() }
        let engine = try open()
        try engine.withSession { try fillAtRandom(engine, $0) }
        if request.fillsStore { try measureRest(engine, sampler) }
        try leave(engine)
    }

    func runFull() throws {
        let draws =
            wantsAny(["ycsb-a", "ycsb-b"])
            ? (0..<2).map { Zipfian.draws(500_000, of: count, seed: UInt64($0 + 7)) } : []
        let engine = try open()
        try measureReads(engine)
        try measureMixes(engine, draws)
        try measureOverwrites(engine)
        try leave(engine)
    }

    private func fillAtRandom(_ engine: Kind.Opened, _ session: S) throws {
        let order = random(seed: 1)
        var done = 0
        if wants(ChainStep.fillWorkload) {
            let recorder = try put(
                session, order, version: 0, isNew: true, seconds: scale.fillSeconds)
            done = recorder.operations
            report(
                recorder.sample(ChainStep.fillWorkload, wanted: count, hasTimeline: true))
        }
        guard request.fillsStore else {
            return try verify(session, version: 0, records: done, order: order)
        }
        // What a slow engine did not get to within its time: outside the clock, and in the order
        // of keys, which no engine minds.
        try putRest(session, (done..<count).map { order[$0] }.sorted())
        try verify(session, version: 0, records: count, order: order)
    }

    private func measureRest(_ engine: Kind.Opened, _ sampler: MemorySampler) throws {
        let compactStart = ticks_nanoseconds()
        try engine.compact()
        let compactSeconds = Double(ticks_nanoseconds() - compactStart) / 1e9
        try engine.settle()
        report(
            Sample(
                workload: "compact", valueBytes: 0, records: 0, operations: count,
                seconds: compactSeconds))
        // Filled, compacted and quiet, before anything was read.
        let rest = sampler.bytesNow()
        let disk = ProcessFigures.disk(request.directory)
        report(
            "disk-ratio", Double(disk.bytes) / logicalBytes(count), "ratio",
            more: ["bytes": Double(disk.bytes), "files": Double(disk.files)])
        let peak = sampler.peakBytes()
        report("memory-anonymous-rest", Double(rest.anonymous), "bytes")
        report("memory-resident-rest", Double(rest.resident), "bytes")
        report("memory-anonymous-peak", Double(peak.anonymous), "bytes")
        report("memory-resident-peak", Double(peak.resident), "bytes")
    }

    private func measureReads(_ engine: Kind.Opened) throws {
        guard
            wantsAny([
                "readrandom", "readrandom-2t", "readmissing", "scan", "seek100", "prefixscan",
            ])
        else { return }
        try engine.withSession { try measureReads(engine, $0) }
    }

    private func measureReads(_ engine: Kind.Opened, _ session: S) throws {
        let order = random(seed: 2)
        // Warm: everything was read once, in order and at random.
        try scanAll(session, report: nil)
        _ = try get(session, order, seconds: scale.readSeconds / 2)
        if wants("readrandom") {
            let recorder = try get(session, order, seconds: scale.readSeconds)
            report(recorder.sample("readrandom", wanted: nil, hasTimeline: false))
        }
        if wants("readrandom-2t") {
            let half = count / 2
            let recorders = try runTogether(
                on: engine,
                [0, half].map { first in
                    { [unchecked = Unchecked(self)] session in
                        let chain = unchecked.value
                        return try chain.get(
                            session, chain.random(seed: 2), from: first,
                            seconds: chain.scale.readSeconds)
                    }
                })
            report(Recorder.sample("readrandom-2t", of: recorders))
        }
        if wants("readmissing") {
            let recorder = try get(session, order, isMissing: true, seconds: scale.readSeconds)
            report(recorder.sample("readmissing", wanted: nil, hasTimeline: false))
        }
        if wants("scan") { try scanAll(session, report: "scan") }
        if wants("seek100") {
            let recorder = try seek(
                session, order, prefixBytes: 0, limit: 100, seconds: scale.readSeconds)
            report(recorder.sample("seek100", wanted: nil, hasTimeline: false))
        }
        if wants("prefixscan") {
            let recorder = try seek(
                session, order, prefixBytes: Keys.bytes - 2, limit: .max,
                seconds: scale.readSeconds)
            report(recorder.sample("prefixscan", wanted: nil, hasTimeline: false))
        }
    }

    private func scanAll(_ session: S, report name: String?) throws {
        var seconds = 0.0
        var repetitions = 0
        repeat {
            let start = ticks_nanoseconds()
            let seen = try session.scan(from: nil, prefixBytes: 0, limit: .max)
            seconds += Double(ticks_nanoseconds() - start) / 1e9
            guard seen.records == count, Double(seen.bytes) == logicalBytes(count) else {
                throw EngineFailure(
                    "\(kind.name): a scan gave \(seen.records) records of \(count)")
            }
            consume(seen.checksum)
            repetitions += 1
        } while name != nil && seconds < scale.readSeconds
        guard let name else { return }
        report(
            Sample(
                workload: name, valueBytes: 0, records: 0, operations: count * repetitions,
                seconds: seconds))
    }

    private func measureMixes(_ engine: Kind.Opened, _ draws: [[UInt32]]) throws {
        for (workload, readShare) in [("ycsb-b", 0.95), ("ycsb-a", 0.5)] where wants(workload) {
            let recorders = try runTogether(
                on: engine,
                draws.enumerated().map { index, draws in
                    { [unchecked = Unchecked(self)] session in
                        try unchecked.value.mix(
                            session, draws, readShare: readShare, seed: UInt64(index),
                            seconds: unchecked.value.scale.mixSeconds)
                    }
                })
            report(Recorder.sample(workload, of: recorders))
        }
    }

    private func measureOverwrites(_ engine: Kind.Opened) throws {
        if wantsAny(["overwrite", "write-amplification"]) {
            try engine.settle()
            let before = ProcessFigures.bytesWritten()
            let recorder = try engine.withSession {
                try put(
                    $0, random(seed: 3), version: 1, isNew: false,
                    seconds: scale.overwriteSeconds)
            }
            report(recorder.sample("overwrite", wanted: count, hasTimeline: true))
            try engine.settle()
            let written = Double(ProcessFigures.bytesWritten() - before)
            report(
                "write-amplification", written / logicalBytes(recorder.operations), "ratio",
                more: ["bytes": written, "operations": Double(recorder.operations)])
        }
        guard wantsAny(["readwhilewriting-get", "readwhilewriting-put"]) else { return }
        let unchecked = Unchecked(self)
        let recorders = try runTogether(
            on: engine,
            [
                { session in
                    try unchecked.value.overwriteUntilEnd(
                        session, seconds: unchecked.value.scale.contentionSeconds)
                },
                { session in
                    let chain = unchecked.value
                    return try chain.get(
                        session, chain.random(seed: 5), seconds: chain.scale.contentionSeconds)
                },
            ])
        for (recorder, name) in zip(recorders, ["readwhilewriting-put", "readwhilewriting-get"]) {
            var sample = recorder.sample(name, wanted: nil, hasTimeline: true)
            sample.threads = 2
            report(sample)
        }
    }

    /// Overwrites in random order, round after round, until the time is over.
    private func overwriteUntilEnd(_ session: S, seconds: Double) throws -> Recorder {
        var recorder = Recorder(seconds: seconds)
        let order = random(seed: 4)
        try withUnsafeTemporaryAllocation(byteCount: Keys.bytes, alignment: 16) { key in
            var index = 0
            var version = 2
            repeat {
                if index == count { (index, version) = (0, version + 1) }
                let number = order[index]
                index += 1
                Keys.write(number, to: key.baseAddress!)
                try session.put(
                    UnsafeRawBufferPointer(key), values[number, version], ascending: false)
            } while recorder.tick()
        }
        return recorder
    }
}

/// Carries a value of immutable parts, which the compiler cannot see to be so, to another thread.
struct Unchecked<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
