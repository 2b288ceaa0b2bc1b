import CTicks
import Foundation

// The shorter chains.
extension Chain {
    func runSequential() throws {
        let engine = try open()
        try engine.withSession { session in
            let recorder = try put(
                session, .ascending, version: 0, isNew: true, seconds: scale.fillSeconds)
            report(recorder.sample("fillseq", wanted: count, hasTimeline: true))
            try verify(
                session, version: 0, records: recorder.operations, order: .ascending)
        }
        try leave(engine)
    }

    func runBatches(_ workload: String, inOrder: Bool) throws {
        let size = 1000
        let engine = try open()
        try engine.withSession { session in
            try runBatches(workload, of: size, inOrder: inOrder, engine, session)
        }
        try leave(engine)
    }

    private func runBatches(
        _ workload: String, of size: Int, inOrder: Bool, _ engine: Kind.Opened, _ session: S
    ) throws {
        let order = inOrder ? RecordOrder.ascending : random(seed: 1)
        let recorder = try putBatches(
            session, order, upTo: count, of: size, seconds: scale.fillSeconds)
        // Latencies are those of batches, the rate is that of records.
        var sample = recorder.sample(workload, wanted: nil, hasTimeline: false)
        sample.operations = min(recorder.operations * size, count)
        sample.isCapped = sample.operations < count
        sample.timeline = nil
        try verify(session, version: 0, records: sample.operations, order: order)
        report(sample)
    }

    func runDurable() throws {
        let engine = try open()
        if wants("fillsync") {
            let recorder = try engine.withSession {
                try put(
                    $0, random(seed: 1), version: 0, isNew: true, seconds: scale.syncSeconds)
            }
            report(recorder.sample("fillsync", wanted: nil, hasTimeline: false))
        }
        if wants("groupcommit") {
            let threads = 8
            let recorders = try runTogether(
                on: engine,
                (0..<threads).map { thread in
                    { [unchecked = Unchecked(self)] session in
                        let chain = unchecked.value
                        return try chain.put(
                            session, chain.random(seed: UInt64(10 + thread)), version: 1,
                            isNew: false, seconds: chain.scale.syncSeconds)
                    }
                })
            report(Recorder.sample("groupcommit", of: recorders))
        }
        try leave(engine)
    }

    // MARK: - Opening

    func runReopenClean() throws {
        try measureOpening("open-clean", repetitions: scale.repetitions)
        guard wantsAny(["open-killed", "deleterandom"]) else { return }
        // Some more writes in one go, and no farewell.
        let engine = try open()
        let session = try engine.session()
        let order = random(seed: 8)
        let key = UnsafeMutableRawBufferPointer.allocate(byteCount: Keys.bytes, alignment: 16)
        for index in 0..<recordsBeforeKill {
            let number = order[index]
            Keys.write(number, to: key.baseAddress!)
            try session.put(
                UnsafeRawBufferPointer(key), values[number, Self.versionBeforeKill],
                ascending: false)
        }
        kill(getpid(), SIGKILL)
    }

    private static var versionBeforeKill: Int { 99 }

    private var recordsBeforeKill: Int { min(count / 50, 20_000) }

    func runReopenKilled() throws {
        try measureOpening("open-killed", repetitions: 1)
        let engine = try open()
        try engine.withSession {
            try verify(
                $0, version: Self.versionBeforeKill, records: recordsBeforeKill,
                order: random(seed: 8))
        }
        if wants("deleterandom") {
            try engine.withSession { try deleteAll($0) }
        }
        try leave(engine)
    }

    private func deleteAll(_ session: S) throws {
        let recorder = try remove(session, random(seed: 6), seconds: scale.deleteSeconds)
        report(recorder.sample("deleterandom", wanted: count, hasTimeline: false))
        let left = try session.scan(from: nil, prefixBytes: 0, limit: .max)
        guard left.records == count - recorder.operations else {
            throw EngineFailure("\(kind.name): \(left.records) records after deleting")
        }
    }

    /// From nothing to the first record read.
    private func measureOpening(_ workload: String, repetitions: Int) throws {
        var seconds: [Double] = []
        for _ in 0..<repetitions {
            let start = ticks_nanoseconds()
            let engine = try open()
            try engine.withSession { session in
                let first = try session.scan(from: nil, prefixBytes: 0, limit: 1)
                seconds.append(Double(ticks_nanoseconds() - start) / 1e9)
                guard first.records == 1 else {
                    throw EngineFailure("\(kind.name): nothing there after opening")
                }
            }
            try engine.close()
        }
        seconds.sort()
        report(workload, seconds[seconds.count / 2], "s")
    }

    // MARK: - Many datasets, large values

    private var datasetRecords: Int { scale.datasets * scale.recordsPerDataset }

    func runDatasets() throws {
        let engine = try open()
        let recorder = try engine.withSession { session -> Recorder in
            let recorder = try fillDatasets(session)
            // What a slow engine did not get to within its time, outside the clock.
            try session.fillDatasets(
                recorder.operations..<scale.datasets, records: scale.recordsPerDataset,
                values: values)
            return recorder
        }
        var sample = recorder.sample(
            "datasets-fill", wanted: scale.datasets, hasTimeline: false)
        sample.operations *= scale.recordsPerDataset
        sample.records = datasetRecords
        report(sample)
        try engine.settle()
        let descriptors = ProcessFigures.openDescriptors()
        try engine.close()
        let disk = ProcessFigures.disk(request.directory)
        report(
            "datasets-disk", Double(disk.bytes) / logicalBytes(datasetRecords), "ratio",
            more: [
                "bytes": Double(disk.bytes), "files": Double(disk.files),
                "descriptors": Double(descriptors),
            ])
    }

    /// One by one, until all are there or the time is over.
    private func fillDatasets(_ session: S) throws -> Recorder {
        var recorder = Recorder(seconds: scale.datasetsSeconds)
        for dataset in 0..<scale.datasets {
            try session.fillDataset(dataset, records: scale.recordsPerDataset, values: values)
            guard recorder.tick() else { break }
        }
        return recorder
    }

    func runDatasetsReopen() throws {
        let sampler = MemorySampler()
        defer { sampler.stop() }
        let start = ticks_nanoseconds()
        let engine = try open()
        try engine.withSession { session in
            try measureDatasets(engine, session, openedAt: start, sampler)
        }
        try leave(engine)
    }

    private func measureDatasets(
        _ engine: Kind.Opened, _ session: S, openedAt start: UInt64, _ sampler: MemorySampler
    ) throws {
        var checksum: UInt64 = 0
        guard
            try session.get(
                dataset: scale.datasets / 2, record: 0, checksum: &checksum) == values.bytes
        else { throw EngineFailure("\(kind.name): a dataset is missing") }
        report("datasets-open", Double(ticks_nanoseconds() - start) / 1e9, "s")
        let memory = sampler.bytesNow()
        report(
            "datasets-memory", Double(memory.anonymous), "bytes",
            more: [
                "resident": Double(memory.resident),
                "bytesPerDataset": Double(memory.anonymous) / Double(scale.datasets),
            ])
        let order = Permutation(of: datasetRecords, seed: 9)
        var recorder = Recorder(seconds: scale.readSeconds)
        var index = 0
        repeat {
            if index == order.count { index = 0 }
            let number = order[index]
            index += 1
            let (dataset, record) = number.quotientAndRemainder(
                dividingBy: scale.recordsPerDataset)
            let bytes = try session.get(
                dataset: dataset, record: record, checksum: &checksum)
            guard bytes == values.bytes else {
                throw EngineFailure("\(kind.name): record \(record) of \(dataset) is missing")
            }
        } while recorder.tick()
        consume(checksum)
        var sample = recorder.sample("datasets-read", wanted: nil, hasTimeline: false)
        sample.records = datasetRecords
        report(sample)
    }

    func runLarge() throws {
        let engine = try open()
        try engine.withSession { try runLarge(engine, $0) }
        try leave(engine)
    }

    private func runLarge(_ engine: Kind.Opened, _ session: S) throws {
        let records = max(1, scale.largeBytes / values.bytes)
        let key = UnsafeMutableRawBufferPointer.allocate(byteCount: Keys.bytes, alignment: 16)
        defer { key.deallocate() }
        let order = Permutation(of: records, seed: 1)
        var recorder = Recorder(seconds: nil)
        for index in 0..<records {
            let number = order[index]
            Keys.write(number, to: key.baseAddress!)
            try session.put(UnsafeRawBufferPointer(key), values[number], ascending: false)
            _ = recorder.tick()
        }
        var sample = recorder.sample("large-put", wanted: nil, hasTimeline: false)
        sample.records = records
        report(sample)
        try engine.settle()
        let value = UnsafeMutableRawBufferPointer.allocate(
            byteCount: values.bytes, alignment: 64)
        defer { value.deallocate() }
        let readOrder = Permutation(of: records, seed: 2)
        recorder = Recorder(seconds: scale.readSeconds)
        var index = 0
        repeat {
            if index == records { index = 0 }
            Keys.write(readOrder[index], to: key.baseAddress!)
            index += 1
            guard try session.read(UnsafeRawBufferPointer(key), to: value) == values.bytes else {
                throw EngineFailure("\(kind.name): a large value is missing")
            }
        } while recorder.tick()
        sample = recorder.sample("large-get", wanted: nil, hasTimeline: false)
        sample.records = records
        report(sample)
    }
}
