import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Lists of the console: complete over their pages, bounded in each, and told with what they hold.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ConsoleListTests {
    @Test("identities come once each over all pages, in both orders, and are found by a search")
    func identities() async throws {
        try await ConsoleFixture.with { fixture in
            var made: [IdentityFacts] = []
            for number in 0..<23 { made.append(try fixture.base.identity("user-\(number)")) }
            let ids = made.map(\.id.text).sorted()
            let rising = try await fixture.all(.identities, "sort=id", limit: 5)
            #expect(rising.rows.compactMap { $0["identity"]?.text } == ids)
            #expect(rising.pages == 5)
            let falling = try await fixture.all(.identities, "sort=-id", limit: 7)
            #expect(falling.rows.compactMap { $0["identity"]?.text } == ids.reversed())
            let found = try await fixture.ask(.identities, "q=USER-17")
            #expect(found.rows.map { $0["identity"]?.text } == [made[17].id.text])
            let login = try #require(found.rows.first?["logins"]?.elements?.first)
            #expect(login["subject"]?.text == "user-17")
            let start = String(made[3].id.text.prefix(20))
            let byPrefix = try await fixture.ask(.identities, "q=\(start)")
            #expect(byPrefix.rows.contains { $0["identity"]?.text == made[3].id.text })
            #expect(byPrefix.rows.allSatisfy { $0["identity"]?.text?.hasPrefix(start) ?? false })
            let none = try await fixture.ask(.identities, "q=nobody")
            #expect(none.rows.isEmpty && none["next"] == nil)
        }
    }

    @Test("an identity is told with its logins and datasets, and never with what is another's")
    func identity() async throws {
        try await ConsoleFixture.with { fixture in
            let (alice, bob) = (
                try fixture.base.identity("alice"), try fixture.base.identity("bob")
            )
            try fixture.base.dataset("notes", of: alice, ["a": "1"])
            try fixture.base.dataset("tasks", of: bob)
            let answer = try await fixture.ask(.identity, "identity=\(alice.id)")
            #expect(answer["pool"]?.text == fixture.base.pool.text)
            #expect(answer["isEnabled"] == .bool(true))
            let datasets = answer["datasets"]?.elements ?? []
            #expect(datasets.compactMap { $0["name"]?.text } == ["notes"])
            let none = "us-east-1:00000000-0000-4000-8000-000000000000"
            #expect(try await fixture.refusal(.identity, "identity=\(none)") == .resourceNotFound)
        }
    }

    @Test("a search looks at so many entries and no more, and says where to go on")
    func boundedSearch() async throws {
        try await ConsoleFixture.with { fixture in
            var batch = WriteBatch()
            let dataset = try fixture.store.dataset(HubDatasets.identities)
            let count = ConsoleLimits.scannedMax + 10
            for number in 0..<count {
                let digits = String(100_000 + number)
                let id = try #require(IdentityID("us-east-1:\(digits)"))
                let facts = IdentityFacts(
                    id: id, pool: fixture.base.pool, created: 0,
                    logins: [IdentityFixture.login("s\(number)e")])
                batch.put(try facts.encoded(), for: Array(id.text.utf8), in: dataset)
            }
            try fixture.store.write(batch)
            let first = try await fixture.ask(.identities, "q=s\(count - 1)e")
            #expect(first.rows.isEmpty)
            let next = try #require(first["next"]?.text)
            let second = try await fixture.ask(
                .identities, "q=s\(count - 1)e&after=\(ConsoleFixture.encoded(next))")
            #expect(second.rows.count == 1 && second["next"] == nil)
        }
    }

    @Test("datasets come once each, without the hub's own, by prefix and by a part of the name")
    func datasets() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            let own = try fixture.base.dataset("notes", of: alice, ["a": "1", "b": "2"]).name
            var names = [own]
            for number in 0..<40 {
                let name = "shared-\(number)"
                _ = try fixture.store.dataset(name)
                names.append(name)
            }
            for name in ["a", "hub", "hubble", "zeta"] {
                _ = try fixture.store.dataset(name)
                names.append(name)
            }
            let all = try await fixture.all(.datasets, limit: 7)
            #expect(all.rows.compactMap { $0["dataset"]?.text } == names.sorted())
            #expect(all.pages == (names.count + 6) / 7)
            let shared = try await fixture.all(.datasets, "prefix=shared-1", limit: 50)
            #expect(shared.rows.count == 11)
            let part = try await fixture.ask(.datasets, "q=ZET")
            #expect(part.rows.compactMap { $0["dataset"]?.text } == ["zeta"])
            let row = try #require(all.rows.first { $0["dataset"]?.text == own })
            #expect(row["identity"]?.text == alice.id.text && row["name"]?.text == "notes")
            #expect(row["count"]?.integer == 2)
            #expect(try await fixture.ask(.datasets, "prefix=hub:").rows.isEmpty)
            #expect(
                try await fixture.refusal(.dataset, "dataset=hub:identities") == .resourceNotFound)
        }
    }

    @Test("datasets come once each over all pages in every order, with those not shown yet sorted")
    func sortedDatasets() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            _ = try fixture.base.dataset("notes", of: alice, ["a": "1"])
            for number in 0..<20 {
                let dataset = try fixture.store.dataset("shared-\(100 + number)")
                // Several have as many operations as another.
                for key in 0...(number * 7 % 10) { try dataset.put("v", for: "k\(key)") }
                var batch = ReplicationBatch()
                batch.checkpoint = (ReplicaID(high: 1, low: 2), PeerCheckpoint(pushedThrough: 1))
                if number % 2 == 0 { _ = try dataset.replicate(batch) }
            }
            let names = try await fixture.all(.datasets, limit: 50).rows
                .compactMap { $0["dataset"]?.text }
            #expect(names.count == 21)
            for order in ["name", "count", "created", "replicas"] {
                let rising = try await fixture.all(.datasets, "sort=\(order)", limit: 4)
                let falling = try await fixture.all(.datasets, "sort=-\(order)", limit: 6)
                let found = rising.rows.compactMap { $0["dataset"]?.text }
                #expect(rising.pages == 6 && falling.pages == 4)
                #expect(found.sorted() == names)
                #expect(found.reversed() == falling.rows.compactMap { $0["dataset"]?.text })
                let values = rising.rows.compactMap { $0[order]?.integer }
                #expect(values == values.sorted())
            }
            let most = try await fixture.ask(.datasets, "sort=-count&limit=1")
            #expect(most.rows.first?["count"]?.integer == 10)
            let part = try await fixture.all(.datasets, "sort=-count&prefix=shared-10", limit: 3)
            #expect(part.rows.count == 10)
            for query in ["sort=size", "sort=-count&after=shared-101", "sort=name&after=1/a"] {
                #expect(try await fixture.refusal(.datasets, query) == .invalidParameter)
            }
        }
    }

    @Test("of more datasets than are sorted at once it is said that only the first ones are")
    func boundedSorting() async throws {
        try await ConsoleFixture.with { fixture in
            for number in 0..<12 { _ = try fixture.store.dataset("shared-\(100 + number)") }
            for (count, lookedAt) in [(12, nil), (11, 11)] as [(Int, Int?)] {
                let query = try ConsoleQuery(
                    "sort=-name&limit=3", names: ConsoleOperation.datasets.parameters)
                let list = try DatasetList(query, sortedMax: count)
                let answer = try JSONValue(parsing: try list.answer(in: fixture.store))
                #expect(
                    answer.rows.compactMap { $0["dataset"]?.text }
                        == (0..<3).map { "shared-\(100 + count - 1 - $0)" })
                #expect(answer["lookedAt"]?.integer == lookedAt)
                #expect(answer["next"]?.text == "0/shared-\(100 + count - 3)")
            }
        }
    }

    @Test("identities come once each over all pages by their dates")
    func sortedIdentities() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset(HubDatasets.identities)
            for number in 0..<15 {
                let id = try #require(IdentityID("us-east-1:\(100 + number)"))
                let facts = IdentityFacts(
                    id: id, pool: fixture.base.pool, created: UInt64(1_000 + number * 7 % 15),
                    logins: [IdentityFixture.login("user-\(number)")])
                try dataset.put(try facts.encoded(), for: Array(id.text.utf8))
            }
            for order in ["created", "modified"] {
                let rising = try await fixture.all(.identities, "sort=\(order)", limit: 4)
                let falling = try await fixture.all(.identities, "sort=-\(order)", limit: 6)
                #expect(rising.pages == 4 && falling.pages == 3)
                let found = rising.rows.compactMap { $0["identity"]?.text }
                #expect(Set(found).count == 15 && found.count == 15)
                #expect(found.reversed() == falling.rows.compactMap { $0["identity"]?.text })
                let dates = rising.rows.compactMap { $0[order]?.integer }
                #expect(dates == dates.sorted() && dates.count == 15)
            }
            let some = try await fixture.ask(.identities, "sort=-created&q=user-7")
            #expect(some.rows.compactMap { $0["identity"]?.text } == ["us-east-1:107"])
            #expect(
                try await fixture.refusal(.identities, "sort=created&after=us-east-1:100")
                    == .invalidParameter)
        }
    }

    @Test("pages of ranks are what sorting all of them gives")
    func rankedPages() {
        typealias Rank = RankedPage.Rank
        let all = (0..<40).map { Rank(UInt64($0 * 17 % 8), "name-\($0 * 23 % 40)") }
        for isDescending in [false, true] {
            let sorted: [Rank] = isDescending ? all.sorted().reversed() : all.sorted()
            for limit in [1, 3, 40, 41] {
                var found: [Rank] = []
                var hasMore = true
                while hasMore {
                    var page = RankedPage(
                        after: found.last, isDescending: isDescending, limit: limit)
                    for rank in all { page.consider(rank) }
                    #expect(page.ranks.count <= limit)
                    found += page.ranks
                    hasMore = page.hasMore
                    guard found.count <= all.count else { break }
                }
                #expect(found == sorted)
            }
        }
        #expect(all.allSatisfy { Rank($0.text) == $0 })
        #expect(["", "1", "1/", "/a", "x/a", "-1/a"].allSatisfy { Rank($0) == nil })
    }

    @Test("a dataset is told with its counts, and what it has seen")
    func dataset() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            let dataset = try fixture.base.dataset("notes", of: alice, ["a": "1", "b": "2"])
            try dataset.delete("a")
            let answer = try await fixture.ask(.dataset, "dataset=\(dataset.name)")
            #expect(answer["records"]?.integer == 1 && answer["tombstones"]?.integer == 1)
            #expect(answer["isCountedWhole"] == .bool(true))
            #expect(answer["count"]?.integer == 3 && answer["apiCount"]?.integer == 3)
            let writer = try #require(answer["vector"]?.elements?.first)
            #expect(writer["replica"]?.text == fixture.store.replicaID.description)
            #expect(writer["counter"]?.integer == 3)
        }
    }

    @Test("records come once each over all pages in every order, with tombstones if asked for")
    func records() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("shared")
            let keys = (0..<31).map { "key-\($0)" }
            for key in keys { try dataset.put("value of \(key)", for: key) }
            try dataset.delete("key-7")
            let live = keys.filter { $0 != "key-7" }.sorted()
            let query = "dataset=shared"
            let rising = try await fixture.all(.records, query + "&sort=key", limit: 4)
            #expect(rising.rows.compactMap { $0.shown("key") } == live)
            #expect(rising.rows.first?.shown("value") == "value of key-0")
            let falling = try await fixture.all(.records, query + "&sort=-key", limit: 4)
            #expect(falling.rows.compactMap { $0.shown("key") } == live.reversed())
            let changes = try await fixture.all(
                .records, query + "&sort=change&deleted=1", limit: 6)
            #expect(
                changes.rows.compactMap { $0.shown("key") } == keys.filter { $0 != "key-7" } + [
                    "key-7"
                ])
            #expect(changes.rows.last?["isDeleted"] == .bool(true))
            #expect(changes.rows.last?["count"]?.integer == 32)
            let some = try await fixture.all(
                .records, query + "&prefix=key-2&deleted=1", limit: 3)
            #expect(some.rows.count == 11)
            #expect(try await fixture.refusal(.records, "dataset=none") == .resourceNotFound)
        }
    }

    @Test("a page ends when it has read so many bytes of values")
    func boundedPage() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("large")
            let value = [UInt8](repeating: UInt8(ascii: "x"), count: 3 << 20)
            for number in 0..<5 { try dataset.put(value, for: Array("k\(number)".utf8)) }
            let first = try await fixture.ask(.records, "dataset=large&limit=5")
            #expect(first.rows.count == 3)
            let shown = try #require(first.rows.first?["value"])
            #expect(shown["bytes"]?.integer == value.count)
            #expect(shown["text"]?.text?.utf8.count == ConsoleLimits.shownBytes)
            let all = try await fixture.all(.records, "dataset=large", limit: 5)
            #expect(all.rows.count == 5)
        }
    }

    @Test("devices and replicas are told with how far behind they are, and without any token")
    func peers() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            let dataset = try fixture.base.dataset("notes", of: alice, ["a": "1", "b": "2"])
            let peer = ReplicaID(high: 1, low: 2)
            var batch = ReplicationBatch()
            batch.checkpoint = (peer, PeerCheckpoint(pushedThrough: 1))
            _ = try dataset.replicate(batch)
            let replicas = try await fixture.ask(.replicas).rows
            #expect(replicas.map { $0["replica"]?.text } == [peer.description])
            #expect(replicas.first?["lag"]?.integer == 1)
            let id = try #require(DeviceID("phone <b>"))
            let device = DeviceBook.Device(
                id: id, platform: .gcm, token: "secret-token", created: 5)
            try fixture.store.dataset(DeviceBook.devicesName).put(
                device.encoded, for: DeviceBook.deviceKey(alice.id, id))
            try fixture.store.dataset(DeviceBook.subscriptionsName).put(
                DeviceBook.subscription(told: 1), for: DeviceBook.subscriptionKey(dataset.name, id))
            let answer = try await fixture.ask(.devices)
            #expect(!answer.description.contains("secret-token"))
            let row = try #require(answer.rows.first)
            #expect(row["device"]?.text == "phone <b>" && row["lag"]?.integer == 1)
            #expect(row["isConnected"] == .bool(false) && row["subscriptions"]?.integer == 1)
        }
    }
}
