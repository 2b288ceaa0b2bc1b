import BenchmarkRows
import Foundation

/// The machine that a run was made on.
enum Environment {
    static func row(directory: String, scale: Scale, rounds: Int) -> Row {
        var row = Row(engine: "machine", config: "-", workload: "environment")
        row.extra.environment = [
            "cpu": cpu() ?? "unknown",
            "cores": "\(ProcessInfo.processInfo.activeProcessorCount)",
            "memory": Wording.bytes(Double(ProcessInfo.processInfo.physicalMemory)),
            "system": ProcessInfo.processInfo.operatingSystemVersionString,
            "kernel": text("/proc/sys/kernel/osrelease"),
            "file_system": fileSystem(of: directory),
            "date": ISO8601DateFormatter().string(from: Date()),
            "records": "\(scale.records)",
            "rounds": "\(rounds)",
            "page_cache": "warm: what is read was written or read shortly before",
            "block_cache": Wording.bytes(Double(EngineOptions.cacheBytes)),
        ]
        return row
    }

    private static func cpu() -> String? {
        text("/proc/cpuinfo").split(separator: "\n").first { $0.hasPrefix("model name") }
            .flatMap { $0.split(separator: ":").last }
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }

    private static func text(_ path: String) -> String {
        let data = FileManager.default.contents(atPath: path) ?? Data()
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The kind of the mount with the longest path above the directory.
    private static func fileSystem(of directory: String) -> String {
        let path = URL(fileURLWithPath: directory).resolvingSymlinksInPath().path
        let mounts = text("/proc/mounts").split(separator: "\n").map { $0.split(separator: " ") }
        let above = mounts.filter {
            $0.count > 2 && (path == $0[1] || $0[1] == "/" || path.hasPrefix($0[1] + "/"))
        }
        return above.max { $0[1].count <= $1[1].count }.map { String($0[2]) } ?? "unknown"
    }
}
