import BenchmarkRows
import TidemarkSync

/// How a contender was set up, as a row without figures.
struct Settings {
    let engine: String
    let config: String
    let version: String
    let settings: String

    var row: Row {
        var row = Row(engine: engine, config: config, workload: "settings")
        row.extra.version = version
        row.extra.settings = settings
        return row
    }

    /// For people, in lines that fit beside the table.
    var text: String {
        (["\(engine) \(config): \(version)"] + Wording.wrapped(settings, columns: 88))
            .joined(separator: "\n")
    }

    /// Of all contenders that are installed.
    static func all(ways: [TidemarkSession.Way]) throws -> [Settings] {
        let options = SyncOptions()
        let ours = ways.map { way in
            let sides = way == .http ? "two processes" : "one process"
            return Settings(
                engine: "tidemark", config: way.rawValue, version: "this tree",
                settings: "\(sides), hub at durability process, pages of \(options.pageBytesMax) "
                    + "bytes or \(options.pageRecordsMax) records, other options as they come")
        }
        var all = ours
        all.append(
            try Settings(
                engine: "cp", config: "file", version: version(of: "cp"),
                settings: "--reflink=never; power: fsync of the copy on the clock"))
        if ChildProcess.find("rsync") != nil {
            all.append(
                try Settings(
                    engine: "rsync", config: "delta", version: version(of: "rsync"),
                    settings: "-a --no-whole-file (--inplace, --whole-file where so named; "
                        + "power: --fsync), between two local processes, one flat file"))
        }
        if ChildProcess.find("redis-server") != nil {
            all.append(
                try Settings(
                    engine: RedisPeer.engine, config: RedisPeer.config,
                    version: version(of: "redis-server"),
                    settings: RedisServer.settings.map { $0.isEmpty ? "\"\"" : $0 }
                        .joined(separator: " ")))
        }
        return all
    }

    /// The first line of what a program says about itself.
    private static func version(of program: String) throws -> String {
        let text = try ChildProcess.run(ChildProcess.path(of: program), ["--version"])
        return text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    }
}
