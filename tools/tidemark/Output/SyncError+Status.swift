import Tidemark
import TidemarkSync

extension SyncError: ReportableError {
    var exitStatus: CommandStatus {
        switch code {
        case .unreachable, .peerFailed: .unavailable
        case .unauthorized: .refused
        case .protocolMismatch: .tooNew
        case .badMessage, .tooLarge: .protocolBroken
        case .conflictPending, .datasetDeleted, .wrongBundle, .partialReplica, .recordRefused,
            .recordsMoved:
            .negative
        case .contended, .cancelled, .peerChanged: .busy
        case .sameReplica, .damagedBundle: .badData
        case .store: storeError.map { CommandStatus($0.code) } ?? .defect
        default: .defect
        }
    }
}
