import Synchronization

/// Whether the hub takes requests: behind a load balancer, whether it is to get any.
final class Readiness: Sendable {
    private let isShuttingDown = Atomic<Bool>(false)
    private let disk: DiskGuard

    init(disk: DiskGuard) {
        self.disk = disk
    }

    func shutDown() {
        isShuttingDown.store(true, ordering: .relaxed)
    }

    /// nil if all is well; else why not, as a word.
    var problem: String? {
        if isShuttingDown.load(ordering: .relaxed) { return "shuttingDown" }
        return disk.isStopped ? "notWriting" : nil
    }
}
