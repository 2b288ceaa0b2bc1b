import Synchronization
import Tidemark

/// A peer that is a file: it answers each pull with the bundle's next page, and nothing else.
final class BundleTransport: SyncTransport {
    private let bundle: BundleFile
    private let next: Mutex<Int>

    /// - Parameter first: the page that answers the first pull.
    init(_ bundle: BundleFile, first: Int) {
        self.bundle = bundle
        next = Mutex(first)
    }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let index = next.withLock { next in
            defer { next += 1 }
            return next
        }
        guard index < bundle.pages.count else {
            throw SyncError(.peerFailed, "the bundle has no more pages; export it again")
        }
        return try bundle.frame(at: index)
    }
}
