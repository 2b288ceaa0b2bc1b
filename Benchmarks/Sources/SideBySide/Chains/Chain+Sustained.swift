import Foundation

// Bytes written by overwriting all records again and again, until an engine has met all the work
// that it put off. The row write-amplification ends before that where memory takes up much.
extension Chain {
    /// A quarter of the records, so that several times over fits into the time.
    private var sustainedRecords: Int { max(1, count / 4) }

    func runSustained() throws {
        let engine = try open()
        try engine.withSession { try measureSustained(engine, $0) }
        try leave(engine)
    }

    private func measureSustained(_ engine: Kind.Opened, _ session: S) throws {
        let records = sustainedRecords
        try putRest(session, Array(0..<records))
        try engine.settle()
        let before = ProcessFigures.bytesWritten()
        let recorder = try overwriteAll(session)
        try engine.settle()
        let written = Double(ProcessFigures.bytesWritten() - before)
        let isWhole = recorder.operations == records * scale.sustainedPasses
        if isWhole {
            try verify(
                session, version: scale.sustainedPasses, records: records, order: .ascending)
        }
        report(
            Sample(
                workload: "sustained-amplification", valueBytes: 0, records: records,
                isCapped: !isWhole, value: written / logicalBytes(recorder.operations),
                unit: "ratio",
                more: [
                    "bytes": written, "operations": Double(recorder.operations),
                    "passes": Double(recorder.operations) / Double(records),
                    "seconds": recorder.seconds,
                ]))
    }

    /// Overwrites one by one, each time round in another random order.
    private func overwriteAll(_ session: S) throws -> Recorder {
        let key = UnsafeMutableRawBufferPointer.allocate(byteCount: Keys.bytes, alignment: 16)
        defer { key.deallocate() }
        var recorder = Recorder(seconds: scale.sustainedSeconds)
        for pass in 1...scale.sustainedPasses {
            let order = Permutation(of: sustainedRecords, seed: UInt64(20 + pass))
            for index in 0..<sustainedRecords {
                let number = order[index]
                Keys.write(number, to: key.baseAddress!)
                try session.put(
                    UnsafeRawBufferPointer(key), values[number, pass], ascending: false)
                guard recorder.tick() else { return recorder }
            }
        }
        return recorder
    }
}
