import BenchmarkRows
import Foundation
import Glibc
import Synchronization

/// What a bootstrap takes in memory, each side in a process of its own that has done nothing before
/// but open its store.
///
/// The figure is the greatest anonymous memory of a side while it goes on, less what that side had
/// before, and that of the side that took more. So it has in it what the engine itself takes for
/// what it is given: its memtables, tables and caches. Mapped files are not anonymous.
final class BootstrapMemory {
    static let workload = "sync-bootstrap-memory"

    private let workingSet: WorkingSet
    private let pristine: PristineStores
    private let directory: String

    init(_ workingSet: WorkingSet, _ pristine: PristineStores, in directory: String) {
        self.workingSet = workingSet
        self.pristine = pristine
        self.directory = "\(directory)/bootstrap-memory"
    }

    var contender: Contender {
        Contender(
            RowName(
                workload: Self.workload, engine: "tidemark", config: "http", durability: .kill),
            round: { _ in try await self.round() })
    }

    private func round() async throws -> Measurement {
        let (hubPath, replicaPath) = (directory + "/hub", directory + "/replica")
        try removeFile(directory)
        try makeDirectory(directory)
        try copyFolder(pristine.hub, to: hubPath)
        let hub = try HubProcess(storeAt: hubPath, workingSet)
        let replica = try ChildProcess(
            "/proc/self/exe", ["replica", replicaPath, "--port", "\(hub.port)"])
        // It has opened its store.
        _ = try replica.nextLine()
        let watch = MemoryWatch(of: [hub.process, replica.identifier])
        let start = ContinuousClock.now
        try replica.send("bootstrap")
        let pulled = try replica.nextLine()
        var measurement = Measurement(seconds: (ContinuousClock.now - start).seconds)
        let peaks = watch.finish()
        try require(
            pulled == "\(workingSet.recordCount)",
            "bootstrap brought \(pulled) records of \(workingSet.recordCount)")
        try replica.send("digest")
        try hub.give(.digest)
        let (ours, theirs) = (try replica.nextLine(), try hub.answer())
        try require(ours == theirs, "the sides differ: digest \(ours) here, \(theirs) there")
        try require(replica.finish(), "the replica did not end well")
        try await hub.stop()
        try removeFile(directory)
        measurement.bytes = peaks.max() ?? 0
        measurement.more["sender"] = Double(peaks[0])
        measurement.more["receiver"] = Double(peaks[1])
        return measurement
    }
}

/// Looks at the anonymous memory of processes two hundred times a second and keeps the most it saw.
private final class MemoryWatch: Sendable {
    private struct State {
        var peaks: [Int]
        var isOver = false
    }

    private static let secondsBetween = 0.005

    private let processes: [pid_t]
    private let atRest: [Int]
    private let state: Mutex<State>

    init(of processes: [pid_t]) {
        let atRest = processes.map(Self.anonymousBytes)
        self.processes = processes
        self.atRest = atRest
        state = Mutex(State(peaks: atRest))
        // A thread of its own: the tasks of this process wait for its children.
        Thread.detachNewThread { [self] in
            while look() { Thread.sleep(forTimeInterval: Self.secondsBetween) }
        }
    }

    /// Ends it.
    /// - Returns: for each process how much more than at the beginning it had at most, in bytes.
    func finish() -> [Int] {
        _ = look()
        return state.withLock { state in
            state.isOver = true
            return zip(state.peaks, atRest).map { max(0, $0 - $1) }
        }
    }

    /// - Returns: false once it is over.
    private func look() -> Bool {
        let now = processes.map(Self.anonymousBytes)
        return state.withLock { state in
            state.peaks = zip(state.peaks, now).map { max($0, $1) }
            return !state.isOver
        }
    }

    private static func anonymousBytes(of process: pid_t) -> Int {
        let data = FileManager.default.contents(atPath: "/proc/\(process)/status") ?? Data()
        let line = Substring(decoding: data, as: UTF8.self).split(separator: "\n")
            .first { $0.hasPrefix("RssAnon:") }
        let kibibytes = line?.drop { !$0.isNumber }.prefix { $0.isNumber }
        return (kibibytes.flatMap { Int($0) } ?? 0) << 10
    }
}
