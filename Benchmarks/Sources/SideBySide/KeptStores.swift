import Foundation

/// Copies of stores that were filled and compacted once, from which later rounds begin.
///
/// A copy of 1 GiB takes a second; to fill an engine with as much and to compact it takes up to
/// twenty, and what comes after both is the same. What is measured on the way has the fewer rounds.
struct KeptStores {
    private let directory: String
    private var names: Set<String> = []

    /// - Parameter directory: in which copies are put, in a folder of their own.
    init(in directory: String) { self.directory = "\(directory)/kept" }

    private func place(_ name: String) -> String { "\(directory)/\(name)" }

    func has(_ name: String) -> Bool { names.contains(name) }

    /// Keeps a copy of a store that is not open, unless so little room would be left that what is
    /// done to a copy might not find any.
    /// - Parameter roomBytes: how much must be left.
    /// - Returns: whether a copy was kept.
    mutating func keep(_ store: String, as name: String, roomBytes: Int) throws -> Bool {
        let bytes = ProcessFigures.disk(store).bytes
        var system = statvfs()
        guard statvfs(store, &system) == 0 else {
            throw EngineFailure("the room beside \(store) is not known: system error \(errno)")
        }
        let freeBytes = Int(system.f_bavail) * Int(system.f_frsize)
        guard freeBytes - bytes >= roomBytes else { return false }
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        try Self.run("cp", "-r", "--reflink=never", store, place(name))
        // Now, so that no row is measured while the system writes what was copied.
        try Self.run("sync", "-f", place(name))
        names.insert(name)
        return true
    }

    /// Puts a copy of a kept store where no store is.
    func restore(_ name: String, to store: String) throws {
        try Self.run("cp", "-r", "--reflink=never", place(name), store)
    }

    private static func run(_ program: String, _ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        try process.run()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw EngineFailure("\(program) \(arguments.joined(separator: " ")) failed")
        }
    }
}
