import Foundation

/// What the system says of this process.
enum ProcessFigures {
    /// Resident bytes: anonymous ones, and all with mapped files.
    static func memory() -> (anonymous: Int, resident: Int) {
        let status = text("/proc/self/status")
        return (kibibytes("RssAnon:", in: status) << 10, kibibytes("VmRSS:", in: status) << 10)
    }

    /// Bytes that this process has caused to be written to disk. The system counts a page when it
    /// is made dirty: a page that is changed again before the system has written it counts once,
    /// and one of a file that is deleted before that counts all the same.
    static func bytesWritten() -> Int {
        let io = text("/proc/self/io")
        return number("write_bytes:", in: io)
    }

    static func openDescriptors() -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }

    /// Bytes that the files of a directory occupy on disk (not their nominal sizes: some are
    /// sparse or written ahead), and how many files there are.
    static func disk(_ directory: String) -> (bytes: Int, files: Int) {
        var bytes = 0
        var files = 0
        guard let walker = FileManager.default.enumerator(atPath: directory) else {
            return (0, 0)
        }
        for case let name as String in walker {
            var status = stat()
            guard lstat("\(directory)/\(name)", &status) == 0,
                status.st_mode & S_IFMT == S_IFREG
            else { continue }
            bytes += Int(status.st_blocks) * 512
            files += 1
        }
        return (bytes, files)
    }

    private static func text(_ path: String) -> Substring {
        let data = FileManager.default.contents(atPath: path) ?? Data()
        return Substring(decoding: data, as: UTF8.self)
    }

    private static func number(_ name: String, in text: Substring) -> Int {
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            let digits = line.dropFirst(name.count).drop { !$0.isNumber }.prefix { $0.isNumber }
            return Int(digits) ?? 0
        }
        return 0
    }

    private static func kibibytes(_ name: String, in text: Substring) -> Int {
        number(name, in: text)
    }
}

/// Looks at the memory of this process fifty times a second and keeps the most it saw.
final class MemorySampler: @unchecked Sendable {
    private let lock = NSLock()
    // Guarded by `lock`.
    private var peak = (anonymous: 0, resident: 0)
    private var isStopped = false
    /// What the driver itself holds, measured when the sampler was made.
    private let baseline: (anonymous: Int, resident: Int)

    init() {
        baseline = ProcessFigures.memory()
        let thread = Thread { [self] in
            while true {
                let now = ProcessFigures.memory()
                let goesOn = lock.withLock {
                    peak.anonymous = max(peak.anonymous, now.anonymous)
                    peak.resident = max(peak.resident, now.resident)
                    return !isStopped
                }
                guard goesOn else { return }
                usleep(20_000)
            }
        }
        thread.start()
    }

    func stop() {
        lock.withLock { isStopped = true }
    }

    /// The most so far, beside the driver's own.
    func peakBytes() -> (anonymous: Int, resident: Int) {
        lock.withLock {
            (peak.anonymous - baseline.anonymous, peak.resident - baseline.resident)
        }
    }

    /// What is held now, beside the driver's own.
    func bytesNow() -> (anonymous: Int, resident: Int) {
        let now = ProcessFigures.memory()
        return (now.anonymous - baseline.anonymous, now.resident - baseline.resident)
    }
}
