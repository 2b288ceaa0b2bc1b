import Tidemark
import TidemarkSync

extension JSONLine {
    init(_ result: SyncResult) {
        self.init()
        add("dataset", result.dataset)
        add("peer", result.remoteReplica.description)
        add("pulled", result.pulled)
        add("pushed", result.pushed)
        add("conflicts", result.conflicts)
        add("quarantined", result.quarantined)
        add("overlooked", result.overlooked)
        add("bytesReceived", result.bytesReceived)
        add("bytesSent", result.bytesSent)
        add("attempts", result.attempts)
        add("localSyncCount", result.localSyncCount.rawValue)
        add("remoteSyncCount", result.remoteSyncCount.rawValue)
    }
}
