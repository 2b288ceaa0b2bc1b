import Foundation
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Datasets as a whole, and what identities and pools hold.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct DatasetOperationsTests {
    private struct DatasetList: Decodable {
        let datasets: [WireDataset]
        let count: Int
        let nextToken: String?
    }

    private struct IdentityUsageAnswer: Decodable {
        struct Usage: Decodable {
            let identityId: String
            let identityPoolId: String
            let lastModifiedDate: Double?
            let datasetCount: Int
            let dataStorage: Int
        }
        let identityUsage: Usage
    }

    private struct PoolUsage: Decodable {
        let identityPoolId: String
        let syncSessionsCount: UInt64
        let dataStorage: Int
        let lastModifiedDate: Double?
    }

    private struct PoolUsageAnswer: Decodable {
        let identityPoolUsage: PoolUsage
    }

    private struct PoolUsageList: Decodable {
        let identityPoolUsages: [PoolUsage]
        let maxResults: Int
        let count: Int
        let nextToken: String?
    }

    private static let developer = Principal.developer(keyID: "AKID", pools: nil)

    private static var identityPath: String {
        "/identitypools/\(CognitoFixture.pool)/identities/\(CognitoFixture.identity)"
    }

    @Test("a dataset is described by what it holds, and by its last change")
    func description() async throws {
        try await withCognito { fixture in
            let device = CognitoDevice(fixture: fixture, deviceID: "phone")
            let answer = try await device.sync([.put("äö", "a"), .put("2", "bc")])
            let body = try await device.describe()
            #expect(body.identityId == CognitoFixture.identity && body.datasetName == "notes")
            #expect(body.numRecords == 2 && body.dataStorage == 1 + 4 + 2 + 1)
            #expect(body.lastModifiedBy == "phone")
            #expect(body.lastModifiedDate == answer.last?.lastModifiedDate)
            #expect(body.creationDate <= body.lastModifiedDate && body.creationDate > 0)
            try await device.sync([.remove("bc", 1)])
            let after = try await device.describe()
            #expect(after.numRecords == 1 && after.dataStorage == 5)
            #expect(after.creationDate == body.creationDate)
        }
    }

    @Test("a deletion tells what was deleted, and a second one that there is nothing")
    func deletion() async throws {
        try await withCognito { fixture in
            let device = CognitoDevice(fixture: fixture, deviceID: "phone")
            for call in [device.describe, device.delete] {
                let refused = try await refusal { _ = try await call() }
                #expect(refused?.kind == .resourceNotFound)
            }
            try await device.sync([.put("1", "a")])
            let body = try await device.describe()
            #expect(try await device.delete() == body)
            let refused = try await refusal { try await device.delete() }
            #expect(refused?.kind == .resourceNotFound)
            let described = try await refusal { _ = try await device.describe() }
            #expect(described?.kind == .resourceNotFound)
            // Nothing is left of who wrote its records.
            let sheet = try #require(
                try Sheet(of: "\(CognitoFixture.identity):notes", in: fixture.store))
            #expect(try sheet.entries().isEmpty)
        }
    }

    @Test("counts of calls with several records outlive the dataset")
    func countsAfterDeletion() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync((0..<10).map { .put("1", "k\($0)") })
            try await device.delete()
            let answer = try await device.sync([.put("1", "a"), .put("1", "b")])
            #expect(answer.map(\.syncCount) == [3, 3])
            #expect(try await device.list(since: 2).contents == ["a": "1@3", "b": "1@3"])
        }
    }

    @Test("who has heard of a deletion is not told of it again, however many calls come after it")
    func deletionBehindManyCalls() async throws {
        try await withCognitoDevice { device, fixture in
            for round in 0..<3 {
                try await device.sync((0..<5).map { .put("\(round)", "k\($0)", UInt64(round)) })
            }
            try await device.delete()
            var counts: [UInt64] = [0, 0, 0]
            for round in 0..<200 {
                let answer = try await device.sync(
                    (0..<3).map { .put("\(round)", "k\($0)", counts[$0]) })
                counts = answer.map(\.syncCount)
            }
            #expect(counts == [204, 204, 204])
            let dataset = try fixture.dataset()
            let facts = try fixture.books.facts(
                of: dataset.name, at: try dataset.knowledge(), in: fixture.store)
            #expect(facts.map.anchors.count < 150, "the map is pruned")
            for since: UInt64 in 1...204 {
                let listing = try await device.list(since: since)
                #expect(listing.datasetDeletedAfterRequestedSyncCount == (since < 4))
                #expect(listing.count == (since < 204 ? 3 : 0))
            }
        }
    }

    @Test("the datasets of an identity are listed by pages, and nobody else's")
    func listing() async throws {
        try await withCognito { fixture in
            let names = ["a", "a.b", "notes", "notes:x", "z-1"]
            for name in names {
                try await CognitoDevice(fixture: fixture, dataset: name).sync([.put("1", "k")])
            }
            let other = CognitoDevice(fixture: fixture, identity: "us-east-1:1111-aaa")
            try await other.sync([.put("1", "k")])
            try fixture.store.dataset("shared").put("1", for: "k")
            for size in [1, 2, 5, 60] {
                var told: [String] = []
                var next: String?
                repeat {
                    let token = next.map { "&nextToken=\($0)" } ?? ""
                    let page: DatasetList = try Wire.decoded(
                        try await fixture.answer(
                            "GET", Self.identityPath + "/datasets",
                            query: "maxResults=\(size)\(token)"))
                    #expect(page.count == page.datasets.count && page.count <= size)
                    #expect(page.datasets.allSatisfy { $0.numRecords == 1 && $0.dataStorage == 2 })
                    told += page.datasets.map(\.datasetName)
                    next = page.nextToken
                } while next != nil
                #expect(told == names)
            }
            let refused = try await refusal {
                _ = try await fixture.answer(
                    "GET", Self.identityPath + "/datasets", query: "nextToken=AAAA")
            }
            #expect(refused?.kind == .invalidParameter)
        }
    }

    @Test("an identity's usage is that of all its datasets")
    func identityUsage() async throws {
        try await withCognito { fixture in
            func usage() async throws -> IdentityUsageAnswer.Usage {
                let answer: IdentityUsageAnswer = try Wire.decoded(
                    try await fixture.answer("GET", Self.identityPath))
                return answer.identityUsage
            }
            let none = try await usage()
            #expect(none.datasetCount == 0 && none.dataStorage == 0)
            #expect(none.lastModifiedDate == nil)
            #expect(none.identityPoolId == CognitoFixture.pool)
            try await CognitoDevice(fixture: fixture, dataset: "a").sync([.put("123", "k")])
            let last = try await CognitoDevice(fixture: fixture, dataset: "b").sync(
                [.put("12", "k")])
            let all = try await usage()
            #expect(all.datasetCount == 2 && all.dataStorage == 7)
            #expect(all.lastModifiedDate == last.first?.lastModifiedDate)
        }
    }

    @Test("a pool's usage is that of all its identities, as it was at most a minute ago")
    func poolUsage() async throws {
        let second = "us-east-1:0000-bb"
        try await withCognito(pools: [CognitoFixture.pool, second]) { fixture in
            func usage() async throws -> PoolUsage {
                let answer: PoolUsageAnswer = try Wire.decoded(
                    try await fixture.answer(
                        "GET", "/identitypools/\(CognitoFixture.pool)", as: Self.developer))
                return answer.identityPoolUsage
            }
            let home = try fixture.store.dataset("test-pools")
            for number in 0..<70 {
                let identity = "us-east-1:aa\(number < 10 ? "0" : "")\(number)"
                try home.put("", for: "\(CognitoFixture.pool)/\(identity)")
                try fixture.dataset(of: identity).put("123", for: "k")
            }
            try fixture.dataset(of: "us-east-1:ff").put("of another pool", for: "k")
            #expect(try await usage().dataStorage == 280)
            try fixture.dataset(of: "us-east-1:aa00").put("1234", for: "k")
            #expect(try await usage().dataStorage == 280)
            fixture.time.advance(by: .seconds(60))
            #expect(try await usage().dataStorage == 281)
            let list: PoolUsageList = try Wire.decoded(
                try await fixture.answer("GET", "/identitypools", as: Self.developer))
            #expect(list.identityPoolUsages.map(\.identityPoolId) == [CognitoFixture.pool, second])
            #expect(list.identityPoolUsages.map(\.dataStorage) == [281, 0])
            #expect(list.count == 2 && list.nextToken == nil)
            let first: PoolUsageList = try Wire.decoded(
                try await fixture.answer(
                    "GET", "/identitypools", query: "maxResults=1", as: Self.developer))
            #expect(first.maxResults == 1 && first.count == 1)
            let next = try #require(first.nextToken)
            let rest: PoolUsageList = try Wire.decoded(
                try await fixture.answer(
                    "GET", "/identitypools", query: "nextToken=\(next)", as: Self.developer))
            #expect(rest.identityPoolUsages.map(\.identityPoolId) == [second])
            let unknown = try await refusal {
                _ = try await fixture.answer(
                    "GET", "/identitypools/us-east-1:cc", as: Self.developer)
            }
            #expect(unknown?.kind == .resourceNotFound)
        }
    }

    @Test("each listing begins a sync session, its further pages do not; the counts are stored")
    func sessions() async throws {
        try await withCognitoDevice { device, fixture in
            for index in 0..<4 { try await device.sync([.put("1", "k\(index)")]) }
            _ = try await device.listAll(max: 1)
            let pool = try #require(PoolID(CognitoFixture.pool))
            let sessions = fixture.books.sessions
            #expect(try sessions.count(of: pool, in: fixture.store) == 5)
            try sessions.flush(to: fixture.store)
            #expect(try sessions.count(of: pool, in: fixture.store) == 5)
            _ = try await device.list()
            #expect(try sessions.count(of: pool, in: fixture.store) == 6)
            try sessions.flush(to: fixture.store)
            try sessions.flush(to: fixture.store)
            #expect(try SyncSessionCounter().count(of: pool, in: fixture.store) == 6)
        }
    }

    @Test("the counts of sessions are stored every ten seconds, and when asked")
    func flusher() async throws {
        try await withCognito { fixture in
            let pool = try #require(PoolID(CognitoFixture.pool))
            let flusher = SyncSessionFlusher(
                books: fixture.books, threads: fixture.threads, clock: fixture.time)
            fixture.books.sessions.note(pool)
            let task = Task { try await flusher.run() }
            await fixture.time.untilAsleep()
            fixture.time.advance(by: .seconds(10))
            await fixture.time.untilAsleep()
            #expect(try SyncSessionCounter().count(of: pool, in: fixture.store) == 1)
            fixture.books.sessions.note(pool)
            task.cancel()
            try await task.value
            await flusher.flush()
            #expect(try SyncSessionCounter().count(of: pool, in: fixture.store) == 2)
        }
    }
}
