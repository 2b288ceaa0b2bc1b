import BenchmarkRows
import Foundation
import Glibc

/// `cp` and `rsync`, which know files but no records. They get a flat file of the same keys and
/// values in the order of the keys; `cp` also gets the hub's own directory.
final class FilePeers {
    private let workingSet: WorkingSet
    private let pristine: PristineStores
    private let directory: String
    private let rsync: String?
    private var generation = 0

    private var source: String { directory + "/records" }
    private var recordBytes: Int { WorkingSet.keyBytes + workingSet.valueBytes }

    init(_ workingSet: WorkingSet, _ pristine: PristineStores, in directory: String) {
        self.workingSet = workingSet
        self.pristine = pristine
        self.directory = directory + "/files"
        rsync = ChildProcess.find("rsync")
        if rsync == nil { note("rsync is not installed: its rows are left out") }
    }

    func stop() throws {
        try removeFile(directory)
    }

    // MARK: - Contenders

    func bootstrap() -> [Contender] {
        var contenders = ["file", "store"].map { kind in
            contender("sync-bootstrap", "cp", kind, .kill) { try self.copy(kind) }
        }
        contenders.append(
            contender("sync-bootstrap", "cp", "file", .power) { try self.copySynced() })
        let kinds: [(DurabilityClass, [String])] = [(.kill, []), (.power, ["--fsync"])]
        for (durability, flags) in kinds where rsync != nil {
            contenders.append(
                contender("sync-bootstrap", "rsync", "whole-file", durability) {
                    let target = self.directory + "/whole"
                    try removeFile(target)
                    return try self.transfer(flags + ["--whole-file"], to: target)
                        .of(self.workingSet.recordCount)
                })
        }
        return contenders
    }

    /// - Parameter inBothWays: also as rsync does by default, which writes the file anew and takes
    ///   longer than in place.
    func delta(_ count: Int, inBothWays: Bool) -> [Contender] {
        guard rsync != nil else { return [] }
        var kinds = [("inplace", ["--inplace"])]
        if inBothWays { kinds.insert(("delta", []), at: 0) }
        return kinds.map { kind, flags in
            contender("sync-delta-\(count)", "rsync", kind, .kill) {
                let target = try self.unchangedTarget(kind)
                try self.changeSource(count)
                return try self.transfer(flags + ["--no-whole-file"], to: target).of(count)
            }
        }
    }

    func idle(exchanges: Int) -> [Contender] {
        guard rsync != nil else { return [] }
        return [
            contender("sync-idle", "rsync", "delta", .kill) {
                let target = try self.unchangedTarget("delta")
                var sum = Measurement(seconds: 0)
                for _ in 0..<exchanges {
                    sum.add(try self.transfer(["--no-whole-file"], to: target, isChecked: false))
                }
                try self.check(target)
                return sum.divided(by: exchanges)
            }
        ]
    }

    private func contender(
        _ workload: String, _ engine: String, _ config: String, _ durability: DurabilityClass,
        round: @escaping () throws -> Measurement
    ) -> Contender {
        Contender(
            RowName(
                workload: workload, engine: engine, config: config, durability: durability),
            prepare: { try self.makeSource() }, round: { _ in try round() })
    }

    // MARK: - The file

    private func makeSource() throws {
        guard !FileManager.default.fileExists(atPath: source) else { return }
        try makeDirectory(directory)
        try require(
            FileManager.default.createFile(atPath: source, contents: nil),
            "\(source) cannot be made")
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: source))
        let chunkRecords = 10_000
        for start in stride(from: 0, to: workingSet.recordCount, by: chunkRecords) {
            var chunk = Data(capacity: chunkRecords * recordBytes)
            for index in start..<min(start + chunkRecords, workingSet.recordCount) {
                chunk.append(contentsOf: WorkingSet.key(index))
                chunk.append(contentsOf: workingSet.value(index))
            }
            try file.write(contentsOf: chunk)
        }
        try file.close()
    }

    /// Writes other values of some records where they are.
    private func changeSource(_ count: Int) throws {
        generation += 1
        let descriptor = open(source, O_WRONLY)
        try require(descriptor >= 0, "\(source) does not open: system error \(errno)")
        defer { close(descriptor) }
        for index in workingSet.changed(count, generation: generation) {
            let value = workingSet.value(index, generation: generation)
            let offset = off_t(index * recordBytes + WorkingSet.keyBytes)
            try require(
                pwrite(descriptor, value, value.count, offset) == value.count,
                "\(source) is not written: system error \(errno)")
        }
    }

    /// A copy that rsync itself has made, so that it takes it for the same.
    private func unchangedTarget(_ kind: String) throws -> String {
        let target = "\(directory)/\(kind)"
        let flags = FileManager.default.fileExists(atPath: target) ? [] : ["--whole-file"]
        _ = try transfer(flags + ["--inplace"], to: target)
        return target
    }

    private func check(_ target: String) throws {
        try ChildProcess.run(ChildProcess.path(of: "cmp"), [source, target])
    }

    // MARK: - On the clock

    private func copy(_ kind: String) throws -> Measurement {
        let cp = try ChildProcess.path(of: "cp")
        let target = "\(directory)/copied-\(kind)"
        let original = kind == "file" ? source : pristine.hub
        try removeFile(target)
        let seconds = try timed {
            try ChildProcess.run(cp, ["-r", "--reflink=never", original, target])
        }
        try ChildProcess.run(ChildProcess.path(of: "diff"), ["-rq", original, target])
        var measurement = Measurement(seconds: seconds).of(workingSet.recordCount)
        let bytes = kind == "file" ? workingSet.logicalBytes : try folderBytes(pristine.hub)
        measurement.more["bytes_copied"] = Double(bytes)
        try removeFile(target)
        return measurement
    }

    private func copySynced() throws -> Measurement {
        let cp = try ChildProcess.path(of: "cp")
        let target = directory + "/copied-synced"
        try removeFile(target)
        let seconds = try timed {
            try ChildProcess.run(cp, ["--reflink=never", source, target])
            try syncFile(target)
        }
        try check(target)
        try removeFile(target)
        return Measurement(seconds: seconds).of(workingSet.recordCount)
    }

    /// Between two processes over a local pipe. The bytes are those that rsync counts.
    ///
    /// Without a window of -1 rsync compares whole seconds, and would miss changes made within one.
    private func transfer(
        _ flags: [String], to target: String, isChecked: Bool = true
    ) throws -> Measurement {
        guard let rsync else { throw BenchmarkFailure("rsync is not installed") }
        var statistics = ""
        let seconds = try timed {
            statistics = try ChildProcess.run(
                rsync,
                ["-a", "--modify-window=-1", "--stats"] + flags + [source, target])
        }
        if isChecked { try check(target) }
        var measurement = Measurement(seconds: seconds)
        measurement.wireBytes =
            try Self.figure("Total bytes sent", in: statistics)
            + Self.figure("Total bytes received", in: statistics)
        return measurement
    }

    /// A number among rsync's statistics, whatever stands between its thousands.
    private static func figure(_ label: String, in statistics: String) throws -> Int {
        for line in statistics.split(separator: "\n") where line.hasPrefix(label) {
            if let value = Int(line.filter(\.isNumber)) { return value }
        }
        throw BenchmarkFailure("rsync tells no \"\(label)\"")
    }
}
