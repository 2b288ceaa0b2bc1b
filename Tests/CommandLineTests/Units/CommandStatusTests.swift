import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// Scripts decide by these numbers, so they may not move.
@Suite struct CommandStatusTests {
    private static let storeCodes: [(StoreError.Code, Int32)] = [
        (.invalidArgument, 64), (.notAStore, 66), (.locked, 75),
        (.formatTooNew, 78), (.formatTooOld, 78), (.corruption, 2), (.diskFull, 74),
        (.inputOutput, 74), (.writerStopped, 74), (.readOnly, 64), (.closed, 70),
        (.datasetNotFound, 1),
        (.versionMismatch, 1), (.changesExpired, 75),
    ]

    @Test(arguments: storeCodes)
    func ofStoreErrors(code: StoreError.Code, status: Int32) {
        let error = StoreError(code, "what; remedy", location: .init(path: "file", offset: 7))
        let failure = CommandFailure(error)
        #expect(failure.status.rawValue == status)
        #expect(failure.message == "what; remedy [file at byte 7]")
    }

    private static let syncCodes: [(SyncError.Code, Int32)] = [
        (.unreachable, 69), (.unauthorized, 77), (.protocolMismatch, 78),
        (.badMessage, 76), (.tooLarge, 76), (.conflictPending, 1), (.datasetDeleted, 1),
        (.recordRefused, 1),
        (.contended, 75), (.sameReplica, 65), (.peerFailed, 69), (.cancelled, 75),
        (.peerChanged, 75), (.damagedBundle, 65), (.wrongBundle, 1), (.partialReplica, 1),
    ]

    @Test(arguments: syncCodes)
    func ofSyncErrors(code: SyncError.Code, status: Int32) {
        #expect(CommandFailure(SyncError(code, "what; remedy")).status.rawValue == status)
    }

    @Test func aStoreBehindASyncDecides() {
        let damage = SyncError(StoreError(.corruption, "damaged"))
        #expect(CommandFailure(damage).status == .damage)
    }
}
