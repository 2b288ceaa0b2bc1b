import BenchmarkRows
import Foundation
import Glibc

/// A Redis server without persistence, its settings by arguments.
final class RedisServer {
    /// Waits for the end of its input, and then ends the server by its process id. What the shell
    /// says about that is of no interest.
    private static let script = #"""
        "$@" >/dev/null &
        server=$!
        exec 2>/dev/null
        read -r line
        kill -9 "$server"
        wait "$server"
        exit 0
        """#

    /// Nothing is written to disk; the rest is what makes replication quickest. A full sync of
    /// 200,000 half compressible records of 1 KiB takes 1.3 to 1.8 times as long with
    /// `rdbcompression yes`, the default.
    static let settings = [
        "--save", "", "--appendonly", "no", "--hz", "100", "--repl-diskless-sync", "yes",
        "--repl-diskless-sync-delay", "0", "--repl-diskless-load", "on-empty-db",
        "--rdbcompression", "no", "--repl-backlog-size", "1gb",
        "--client-output-buffer-limit", "replica 0 0 0",
    ]

    let port: Int
    let connection: RedisConnection
    private let child: ChildProcess

    init(_ program: String, in directory: String) throws {
        port = try freePort()
        let place = ["--port", "\(port)", "--bind", "127.0.0.1", "--dir", directory]
        child = try ChildProcess(
            ChildProcess.path(of: "sh"), ["-c", Self.script, "sh", program] + place + Self.settings)
        connection = try RedisConnection(port: port)
    }

    func stop() {
        child.finish()
    }
}

/// A master with all records and a replica of it, both in memory alone.
final class RedisPeer {
    static let engine = "redis"
    static let config = "diskless"
    private static let pollMicroseconds: UInt32 = 200
    private static let pollSecondsMax = 120.0

    private let workingSet: WorkingSet
    private let program: String
    private let directory: String
    private var master: RedisServer?
    private var replica: RedisServer?
    private var generation = 0

    /// nil if there is no Redis on this machine.
    init?(_ workingSet: WorkingSet, in directory: String) {
        guard let program = ChildProcess.find("redis-server") else {
            note("redis-server is not installed: its rows are left out")
            return nil
        }
        self.workingSet = workingSet
        self.program = program
        self.directory = directory
    }

    func stop() {
        replica?.stop()
        master?.stop()
        replica = nil
        master = nil
    }

    // MARK: - Contenders

    func bootstrap() -> Contender {
        contender("sync-bootstrap", prepare: { _ = try self.loadedMaster() }) {
            try self.fullSync()
        }
    }

    func delta(_ count: Int) -> Contender {
        contender("sync-delta-\(count)") { try self.partialSync(count).of(count) }
    }

    func idle() -> Contender {
        contender("sync-idle") {
            var measurement = try self.partialSync(0)
            let (_, replica) = try self.pair()
            let pingCount = 1_000
            let seconds = try timed {
                for _ in 0..<pingCount { try replica.connection.command("PING") }
            }
            measurement.more["ping_seconds"] = seconds / Double(pingCount)
            return measurement
        }
    }

    private func contender(
        _ workload: String, prepare: (() throws -> Void)? = nil,
        round: @escaping () throws -> Measurement
    ) -> Contender {
        let needsReplica = {
            _ = try self.loadedMaster()
            if self.replica == nil { _ = try self.fullSync() }
        }
        return Contender(
            RowName(
                workload: workload, engine: Self.engine, config: Self.config, durability: nil),
            prepare: prepare ?? needsReplica, round: { _ in try round() })
    }

    // MARK: - Rounds

    private func loadedMaster() throws -> RedisServer {
        if let master { return master }
        let started = try RedisServer(program, in: directory)
        master = started
        let workingSet = workingSet
        try started.connection.set(
            (0..<workingSet.recordCount).lazy.map {
                (key: WorkingSet.key($0), value: workingSet.value($0))
            })
        try checkCount(started)
        return started
    }

    private func pair() throws -> (master: RedisServer, replica: RedisServer) {
        guard let master, let replica else {
            throw BenchmarkFailure("the Redis servers were not prepared")
        }
        return (master, replica)
    }

    /// From the order to follow to the end of loading, with a server that was just started.
    private func fullSync() throws -> Measurement {
        let master = try loadedMaster()
        replica?.stop()
        let replica = try RedisServer(program, in: directory)
        self.replica = replica
        let seconds = try timed {
            try follow(master.port)
            try waitUntil("the replica is loaded") { try isLinked(replica) }
        }
        try checkCount(replica)
        var measurement = Measurement(seconds: seconds).of(workingSet.recordCount)
        measurement.wireBytes = try replicationBytes(replica)
        return measurement
    }

    /// The replica is sent to a port where nobody is, so that it keeps what it knows of its
    /// master; the master changes; the replica comes back and takes what it missed out of the
    /// master's backlog.
    private func partialSync(_ count: Int) throws -> Measurement {
        let (master, replica) = try pair()
        let partialBefore = try master.connection.number("stats", "sync_partial_ok")
        let fullBefore = try master.connection.number("stats", "sync_full")
        try follow(freePort())
        try waitUntil("the replica is gone") {
            try master.connection.number("replication", "connected_slaves") == 0
        }
        generation += 1
        let (generation, workingSet) = (generation, workingSet)
        let changed = workingSet.changed(count, generation: generation)
        try master.connection.set(
            changed.lazy.map {
                (
                    key: WorkingSet.key($0),
                    value: workingSet.value($0, generation: generation)
                )
            })
        let target = try master.connection.number("replication", "master_repl_offset")
        let bytesBefore = try replicationBytes(replica)
        let seconds = try timed {
            try follow(master.port)
            try waitUntil("the replica has caught up") {
                let state = try replica.connection.command("INFO", "replication")
                let offset = RedisConnection.field("slave_repl_offset", of: state)
                return RedisConnection.field("master_link_status", of: state) == "up"
                    && (offset.flatMap { Int($0) } ?? 0) >= target
            }
        }
        try require(
            master.connection.number("stats", "sync_partial_ok") == partialBefore + 1
                && master.connection.number("stats", "sync_full") == fullBefore,
            "Redis did not continue from its backlog")
        try check(changed, generation, on: replica)
        var measurement = Measurement(seconds: seconds)
        // Redis does not count the greeting, which is all that passes if nothing has changed.
        measurement.wireBytes =
            count > 0 ? try replicationBytes(replica) - bytesBefore : nil
        return measurement
    }

    // MARK: - Parts

    private func follow(_ port: Int) throws {
        try replica?.connection.command("REPLICAOF", "127.0.0.1", "\(port)")
    }

    private func isLinked(_ replica: RedisServer) throws -> Bool {
        try replica.connection.information("replication", "master_link_status") == "up"
    }

    private func replicationBytes(_ replica: RedisServer) throws -> Int {
        try replica.connection.number("stats", "total_net_repl_input_bytes")
            + replica.connection.number("stats", "total_net_repl_output_bytes")
    }

    private func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
        let start = ContinuousClock.now
        while try !condition() {
            try require(
                (ContinuousClock.now - start).seconds < Self.pollSecondsMax,
                "waited \(Self.pollSecondsMax) s until \(what)")
            usleep(Self.pollMicroseconds)
        }
    }

    private func checkCount(_ server: RedisServer) throws {
        let count = try server.connection.command("DBSIZE")
        try require(
            count == "\(workingSet.recordCount)",
            "Redis holds \(count) records instead of \(workingSet.recordCount)")
    }

    private func check(_ changed: [Int], _ generation: Int, on server: RedisServer) throws {
        try checkCount(server)
        let checksMax = 1_000
        for index in changed.suffix(checksMax) {
            let value = try server.connection.get(WorkingSet.key(index))
            try require(
                value == workingSet.value(index, generation: generation),
                "Redis has another value of record \(index)")
        }
    }
}
