import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What an import leaves in the store of a hub. That a hub tells it as it was is proved by
/// tools/cognito.
@Suite struct DatasetImportTests {
    let directory: TemporaryDirectory
    let store: Store
    let identity: IdentityID
    let pool: PoolID

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
        identity = try #require(IdentityID("us-east-1:00000000-0000-4000-8000-000000000001"))
        pool = try #require(PoolID("us-east-1:00000000-0000-4000-8000-00000000000f"))
    }

    private func target(_ name: String = "notes") throws -> DatasetImport {
        DatasetImport(
            store: store, name: try #require(APIDatasetName(name)), identity: identity)
    }

    private func record(
        _ key: String, _ value: String?, _ count: UInt64, by author: String? = nil,
        at seconds: Double? = nil
    ) -> ListRecordsAnswer.Record {
        ListRecordsAnswer.Record(
            key: key, value: value, syncCount: count, lastModifiedBy: author,
            deviceLastModifiedDate: seconds)
    }

    @Test func allAtFirstAndThenWhatIsNewer() throws {
        let notes = try target()
        #expect(try notes.start() == .all)
        let first = try notes.write([record("a", "1", 2), record("b", nil, 4)], through: 4)
        #expect(first == .written(records: 1, removals: 1))
        #expect(try notes.start() == .after(4))
        let dataset = try #require(try store.existingDataset(notes.storeName))
        #expect(try dataset.get(Array("a".utf8)) == Array("1".utf8))
        #expect(try dataset.syncCount == 4)

        #expect(try notes.write([], through: 4) == .written(records: 0, removals: 0))
        let more = [record("a", "2", 6), record("c", "3", 6)]
        #expect(try notes.write(more, through: 6) == .written(records: 2, removals: 0))
        #expect(try notes.start() == .after(6))
        let map = try #require(try Sheet(of: notes.storeName, in: store)).countMap()
        #expect(map.count(at: try dataset.syncCount.rawValue) == 6)
    }

    @Test func whatSomebodyHasWrittenToIsLeftAlone() throws {
        let notes = try target()
        _ = try notes.write([record("a", "1", 1)], through: 1)
        let dataset = try #require(try store.existingDataset(notes.storeName))
        try dataset.put(Array("mine".utf8), for: Array("a".utf8))
        #expect(try notes.start() == .nothing)
        // And so is what never came here by an import.
        let other = try target("other")
        try store.dataset(other.storeName).put(Array("mine".utf8), for: Array("a".utf8))
        #expect(try other.start() == .nothing)
    }

    @Test func whoWroteARecordAndWhenIsKept() throws {
        let notes = try target()
        _ = try notes.write(
            [record("a", "1", 1, by: "phone", at: 1_500_000_000.25), record("b", "1", 1)],
            through: 1)
        let dataset = try #require(try store.existingDataset(notes.storeName))
        let sheet = try #require(try Sheet(of: notes.storeName, in: store))
        let one = try #require(try dataset.record(for: Array("a".utf8)))
        let entry = try #require(try sheet.entry(of: one))
        #expect(entry.lastModifiedBy == "phone")
        #expect(entry.deviceMilliseconds == 1_500_000_000_250)
        let other = try #require(try dataset.record(for: Array("b".utf8)))
        #expect(try sheet.entry(of: other)?.lastModifiedBy == identity.text)
        #expect(try sheet.entry(of: other)?.deviceMilliseconds == nil)
    }

    @Test func aCountThatIsTooFarAwayLeavesNothing() throws {
        let notes = try target()
        let far = ImportPlan.fillersMax * 2
        #expect(try notes.write([record("a", "1", far)], through: far) == .tooHighCount(far))
        #expect(try store.existingDataset(notes.storeName) == nil)
    }

    @Test func anIdentityIsClosedUntilItsLoginIsKnown() throws {
        let directory = IdentityDirectory(clock: SystemSyncEnvironment())
        let work = IdentityImport(directory: directory, store: store)
        let login = VerifiedLogin(provider: "accounts.example.com", subject: "1234")
        let closed = try work.write(identity, in: pool, created: 7, hasLogins: true, logins: [])
        #expect(closed == .closed)
        #expect(try directory.identity(identity, in: store)?.isEnabled == false)
        let opened = try work.write(
            identity, in: pool, created: 7, hasLogins: true, logins: [login])
        #expect(opened == .open)
        #expect(try directory.owner(of: login, in: pool, store) == identity)
        #expect(try directory.identity(identity, in: store)?.isEnabled == true)
        #expect(try directory.identity(identity, in: store)?.created == 7)
        // Again, it changes nothing.
        let again = try work.write(
            identity, in: pool, created: 9, hasLogins: true, logins: [login])
        #expect(again == .open)

        let other = try #require(IdentityID("us-east-1:00000000-0000-4000-8000-000000000002"))
        let refused = try work.write(
            other, in: pool, created: 7, hasLogins: true, logins: [login])
        guard case .refused = refused else {
            Issue.record("a login is of two identities: \(refused)")
            return
        }
        #expect(try directory.identity(other, in: store) == nil)
        let guest = try work.write(other, in: pool, created: 7, hasLogins: false, logins: [])
        #expect(guest == .open)
        // Somebody has signed in as that guest since, there: its id alone opens nothing here.
        let later = try work.write(other, in: pool, created: 7, hasLogins: true, logins: [])
        #expect(later == .closed)
        #expect(try directory.identity(other, in: store)?.isEnabled == false)
    }

    @Test func nothingComesForAnIdentityThatIsAnothersHere() throws {
        let directory = IdentityDirectory(clock: SystemSyncEnvironment())
        let work = IdentityImport(directory: directory, store: store)
        let other = try #require(IdentityID("us-east-1:00000000-0000-4000-8000-000000000002"))
        let otherPool = try #require(PoolID("us-east-1:0000-2"))
        #expect(try work.takes(identity, of: pool))
        for id in [identity, other] {
            _ = try work.write(id, in: pool, created: 7, hasLogins: false, logins: [])
            #expect(try work.takes(id, of: pool))
            #expect(try !work.takes(id, of: otherPool))
        }
        try directory.merge(other, into: identity, in: store)
        #expect(try work.takes(identity, of: pool))
        #expect(try !work.takes(other, of: pool))
        let outcome = try work.write(other, in: pool, created: 7, hasLogins: false, logins: [])
        #expect(outcome == .refused(IdentityImport.refusal))
    }
}
