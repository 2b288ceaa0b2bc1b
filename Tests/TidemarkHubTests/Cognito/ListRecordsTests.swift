import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What a client is told of a dataset, rule by rule of the reference.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ListRecordsTests {
    @Test("a dataset that was never there is no failure, and was not deleted")
    func unknown() async throws {
        try await withCognitoDevice { device, fixture in
            for since: UInt64? in [nil, 0, 5] {
                let listing = try await device.list(since: since)
                #expect(!listing.datasetExists)
                #expect(!listing.datasetDeletedAfterRequestedSyncCount)
                #expect(listing.records.isEmpty && listing.count == 0)
                #expect(listing.datasetSyncCount == 0)
                #expect(listing.nextToken == nil)
            }
            #expect(try fixture.store.existingDataset("\(CognitoFixture.identity):notes") == nil)
        }
    }

    @Test("all records of a call have its count, and with a count only newer ones are told")
    func counts() async throws {
        try await withCognitoDevice { device, _ in
            let first = try await device.sync([.put("1", "a"), .put("2", "b")])
            #expect(first.map(\.syncCount) == [1, 1])
            let second = try await device.sync([.put("3", "c")])
            #expect(second.map(\.syncCount) == [2])
            let all = try await device.list()
            #expect(all.contents == ["a": "1@1", "b": "2@1", "c": "3@2"])
            #expect(all.datasetSyncCount == 2 && all.datasetExists)
            #expect(try await device.list(since: 1).contents == ["c": "3@2"])
            let none = try await device.list(since: 2)
            #expect(none.records.isEmpty && none.datasetSyncCount == 2)
            #expect(none.lastModifiedBy == CognitoFixture.identity)
        }
    }

    @Test("a removed record is told without a value, also to who asks for everything")
    func tombstones() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.put("1", "a"), .put("", "b")])
            let removed = try await device.sync([.remove("a", 1)])
            #expect(removed.first?.value == nil && removed.first?.syncCount == 2)
            #expect(try await device.list(since: 1).contents == ["a": "-@2"])
            #expect(try await device.list().contents == ["a": "-@2", "b": "@1"])
        }
    }

    @Test("a deletion is told to who has a count from before it, and to nobody else")
    func deletion() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.put("1", "a"), .put("2", "b")])
            try await device.sync([.put("3", "a", 1)])
            try await device.delete()
            let after = try await device.list(since: 2)
            #expect(!after.datasetExists && after.datasetDeletedAfterRequestedSyncCount)
            // The count goes on, so that nothing that comes later is passed over.
            #expect(after.datasetSyncCount == 3)
            let fresh = try await device.list()
            #expect(!fresh.datasetExists && !fresh.datasetDeletedAfterRequestedSyncCount)
            let informed = try await device.list(since: 3)
            #expect(!informed.datasetDeletedAfterRequestedSyncCount)
            let again = try await device.sync([.put("4", "c")])
            #expect(again.first?.syncCount == 4)
            let late = try await device.list(since: 2)
            #expect(late.datasetExists && late.datasetDeletedAfterRequestedSyncCount)
            #expect(late.contents == ["c": "4@4"])
            let first = try await device.list(since: 0)
            #expect(first.datasetExists && !first.datasetDeletedAfterRequestedSyncCount)
            let knowing = try await device.list(since: 3)
            #expect(!knowing.datasetDeletedAfterRequestedSyncCount)
            #expect(knowing.contents == ["c": "4@4"])
        }
    }

    @Test("pages together are the listing, each has all that clients read, and the last no token")
    func paging() async throws {
        try await withCognitoDevice { device, _ in
            for index in 0..<6 {
                try await device.sync((0..<4).map { .put("v", "k\(index)-\($0)") })
            }
            let all = try await device.list().contents
            #expect(all.count == 24)
            for size in [1, 3, 5, 24, 100] {
                let pages = try await device.listAll(max: size)
                #expect(pages.allSatisfy { $0.count <= size && $0.datasetSyncCount == 6 })
                #expect(pages.allSatisfy { $0.datasetExists && !$0.syncSessionToken.isEmpty })
                let told = pages.flatMap(\.records)
                #expect(told.count == 24, "no record twice")
                #expect(Set(told.map(\.key)) == Set(all.keys))
                #expect(pages.count == max(1, (24 + size - 1) / size))
            }
            let late = try await device.listAll(since: 4, max: 3)
            #expect(late.flatMap(\.records).map(\.syncCount).sorted() == [5, 5, 5, 5, 6, 6, 6, 6])
        }
    }

    @Test("what is written between two pages comes with the next listing")
    func movingPages() async throws {
        try await withCognitoDevice { device, _ in
            for index in 0..<5 { try await device.sync([.put("1", "k\(index)")]) }
            let first = try await device.list(max: 2)
            let next = try #require(first.nextToken)
            try await device.sync([.put("2", "k4", 5), .put("2", "k9")])
            let second = try await device.list(max: 10, next: next)
            #expect(second.datasetSyncCount == 5 && second.nextToken == nil)
            let seen = Set((first.records + second.records).map(\.key))
            #expect(seen == ["k0", "k1", "k2", "k3"])
            let rest = try await device.list(since: second.datasetSyncCount)
            #expect(rest.contents == ["k4": "2@6", "k9": "2@6"])
            // The token of a page is as old as its listing.
            let refused = try await refusal {
                try await device.update([.put("x", "y")], session: second.syncSessionToken)
            }
            #expect(refused?.kind == .resourceConflict)
        }
    }

    @Test("a later page has the count of the first, though nothing of that time is left")
    func forgottenPlaces() async throws {
        try await withCognitoDevice { device, fixture in
            // So many calls that what the first one was is dropped from the map of counts.
            let records = 80
            func patches(_ value: Int, _ count: UInt64) -> [Patch] {
                (0..<records).map { .put("\(value)", "k\($0)", count) }
            }
            try await device.sync(patches(0, 0))
            let first = try await device.list(max: 10)
            let next = try #require(first.nextToken)
            for call in 1..<(3 * CountMap.anchorsKeptMax) {
                try await device.sync(patches(call, UInt64(call)))
            }
            let name = "\(CognitoFixture.identity):notes"
            let sheet = try #require(try Sheet(of: name, in: fixture.store))
            let kept = try sheet.countMap()
            #expect(kept.count(at: UInt64(records)) != 1, "the place of the first call is dropped")
            let last = try await device.list(max: 1_000, next: next)
            #expect(first.datasetSyncCount == 1 && last.datasetSyncCount == 1)
            #expect(last.nextToken == nil)
            let rest = try await device.list(since: last.datasetSyncCount)
            #expect(rest.count == records, "what is on no page comes with the next listing")
        }
    }

    @Test("a dataset that is deleted between two pages is told to be deleted")
    func deletedPages() async throws {
        try await withCognitoDevice { device, _ in
            for index in 0..<5 { try await device.sync([.put("1", "k\(index)")]) }
            let first = try await device.list(since: 1, max: 2)
            let next = try #require(first.nextToken)
            try await device.delete()
            let gone = try await device.list(since: 1, max: 2, next: next)
            #expect(!gone.datasetExists && gone.datasetDeletedAfterRequestedSyncCount)
            #expect(gone.nextToken == nil)
            try await device.sync([.put("2", "new")])
            let other = try await device.list(since: 1, max: 2, next: next)
            #expect(other.datasetDeletedAfterRequestedSyncCount && other.nextToken == nil)
        }
    }

    @Test("a client that never asks for pages gets no count beyond what it was told")
    func withoutPages() async throws {
        var limits = HubLimits()
        limits.pageRecordsMax = 5
        limits.patchesMax = 4
        try await withCognitoDevice(limits: limits) { device, _ in
            for index in 0..<4 {
                try await device.sync((0..<3).map { .put("v", "k\(index)-\($0)") })
            }
            var (count, keys): (UInt64, Set<String>) = (0, [])
            for _ in 0..<4 {
                let listing = try await device.list(since: count)
                keys.formUnion(listing.records.map(\.key))
                #expect(listing.datasetSyncCount > count || count == 4)
                count = listing.datasetSyncCount
            }
            #expect(keys.count == 12 && count == 4)
        }
    }

    @Test("a client that never asks for pages gets each call whole, however short pages are")
    func wholeCalls() async throws {
        var limits = HubLimits()
        limits.pageRecordsMax = 2
        limits.patchesMax = 6
        try await withCognitoDevice(limits: limits) { device, _ in
            for call in 0..<3 {
                try await device.sync((0..<6).map { .put("v", "k\(call)-\($0)") })
            }
            var (count, keys): (UInt64, Set<String>) = (0, [])
            for round in 1...3 {
                let listing = try await device.list(since: count)
                keys.formUnion(listing.records.map(\.key))
                #expect(keys.count == 6 * round)
                count = listing.datasetSyncCount
                #expect(count == UInt64(round))
            }
            let pages = try await device.listAll(max: 5)
            #expect(pages.map(\.count) == Array(repeating: 2, count: 9))
        }
    }

    @Test("a count that the dataset never had is answered with everything")
    func countsFromElsewhere() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.put("1", "a")])
            for since in [2, 100, UInt64.max] {
                let listing = try await device.list(since: since)
                #expect(listing.contents == ["a": "1@1"])
                #expect(!listing.datasetDeletedAfterRequestedSyncCount)
            }
        }
    }

    @Test("a token of another dataset is refused")
    func foreignTokens() async throws {
        try await withCognitoDevice { device, fixture in
            for index in 0..<3 { try await device.sync([.put("1", "k\(index)")]) }
            let token = try #require(try await device.list(max: 1).nextToken)
            for other in [
                CognitoDevice(fixture: fixture, dataset: "others"),
                CognitoDevice(fixture: fixture, identity: "us-east-1:2222-aa"),
            ] {
                let refused = try await refusal { _ = try await other.list(next: token) }
                #expect(refused?.kind == .invalidParameter)
            }
            let refused = try await refusal { _ = try await device.list(next: "AAAA") }
            #expect(refused?.kind == .invalidParameter)
        }
    }

    @Test("merged datasets are named as the API calls them, as long as they are there")
    func merged() async throws {
        try await withCognitoDevice { device, fixture in
            let old = CognitoDevice(fixture: fixture, dataset: "notes.us-east-1-old")
            try await device.sync([.put("1", "a")])
            try await old.sync([.put("2", "a")])
            let unmarked = try await device.list()
            #expect(unmarked.mergedDatasetNames.isEmpty, "a name alone says nothing")
            let name = "\(CognitoFixture.identity):"
            try fixture.store.noteMerged(
                MergedDataset(name: name + old.dataset, origin: "us-east-1:old"),
                into: name + "notes")
            let listing = try await device.list()
            #expect(listing.mergedDatasetNames == [old.dataset])
            try await old.delete()
            #expect(try await device.list().mergedDatasetNames.isEmpty)
        }
    }

    @Test("what replicas write is told with its own counts, authors and tombstones")
    func nativeWrites() async throws {
        try await withCognitoDevice { device, fixture in
            try await device.sync([.put("1", "a"), .put("2", "b")])
            let phone = try fixture.directory.store("phone")
            let name = "\(CognitoFixture.identity):notes"
            let responder = SyncResponder(store: fixture.store)
            let transport = InMemoryTransport(responder)
            let notes = try phone.dataset(name)
            _ = try await notes.synchronize(with: transport)
            try notes.put("3", for: "b")
            try notes.delete("a")
            _ = try await notes.synchronize(with: transport)
            let listing = try await device.list(since: 1)
            #expect(listing.contents == ["b": "3@2", "a": "-@3"])
            #expect(listing.records.allSatisfy { $0.lastModifiedBy == "phone" })
            #expect(listing.datasetSyncCount == 3)
            try await device.sync([.put("4", "b", 2)])
            _ = try await notes.synchronize(with: transport)
            #expect(try notes.text("b") == "4")
            try phone.close()
        }
    }

    @Test("a record that is no text is left out, and the others are told")
    func untellable() async throws {
        try await withCognitoDevice { device, fixture in
            try await device.sync([.put("1", "a")])
            let dataset = try fixture.dataset()
            try dataset.put([0xFF], for: Array("b".utf8))
            try dataset.put([1], for: [0xFE])
            let listing = try await device.list()
            #expect(listing.contents == ["a": "1@1"])
            #expect(listing.count == 1 && listing.datasetSyncCount == 3)
        }
    }

    @Test("who wrote a record is its device, its identity or its key, and when by its own clock")
    func authors() async throws {
        try await withCognito { fixture in
            let plain = CognitoDevice(fixture: fixture)
            let phone = CognitoDevice(fixture: fixture, deviceID: "phone/1")
            try await plain.sync([.put("1", "a")])
            var dated = Patch.put("2", "b")
            dated.date = 1_234.5
            let answer = try await phone.sync([dated])
            let pool = try #require(PoolID(CognitoFixture.pool))
            try await plain.update(
                [.put("3", "c")], session: try await plain.list().syncSessionToken,
                as: .developer(keyID: "AKIDEXAMPLE", pools: [pool]))
            let listing = try await plain.list()
            let authors = Dictionary(
                uniqueKeysWithValues: listing.records.map { ($0.key, $0.lastModifiedBy) })
            #expect(
                authors == ["a": CognitoFixture.identity, "b": "phone/1", "c": "AKIDEXAMPLE"])
            #expect(listing.lastModifiedBy == "AKIDEXAMPLE")
            #expect(answer == listing.records.filter { $0.key == "b" })
            #expect(answer.first?.deviceLastModifiedDate == 1_234.5)
            let first = try #require(listing.records.first { $0.key == "a" })
            #expect(first.deviceLastModifiedDate == first.lastModifiedDate)
            // A replica's write is not the device's.
            try fixture.dataset().put("4", for: "b")
            let again = try await plain.list(since: 3)
            #expect(again.records.first?.lastModifiedBy == CognitoFixture.identity)
            #expect(again.records.first?.deviceLastModifiedDate != 1_234.5)
        }
    }

    /// What a power cut takes back is written over by others, and has their counts then.
    ///
    ///     writer   put a ... sync          acknowledged
    ///     reader        list, waiting ...  told
    @Test("what is seen and not durable yet is told when it is")
    func durable() async throws {
        let (storage, gate) = (SimulatedStorage(seed: Seed(1)), SyncGate())
        storage.observe(before: { gate.pass($0) }, after: { _ in })
        let options = StoreOptions(durability: .disk, segmentBytes: 1 << 20)
        let fixture = try CognitoFixture(
            store: try Store.open(at: "/store", options: options, storage: storage))
        let device = CognitoDevice(fixture: fixture)
        try await device.sync([.put("0", "a")])
        let session = try await device.list().syncSessionToken
        gate.arm()
        defer { gate.open() }
        let writing = Task { try await device.update([.put("1", "a", 1)], session: session) }
        try await eventually("held") { gate.isHeld }
        let isTold = Mutex(false)
        let reading = Task {
            let listing = try await device.list()
            isTold.withLock { $0 = true }
            return listing
        }
        // The one that writes, and the one that waits for it.
        try await eventually("waiting, or told") {
            fixture.threads.callCounts.writes == 2 || isTold.withLock { $0 }
        }
        #expect(!isTold.withLock { $0 })
        gate.open()
        let listing = try await reading.value
        #expect(listing.contents == ["a": "1@2"])
        _ = try await writing.value
        try await fixture.threads.shutdown()
        try fixture.store.close()
    }
}

/// Holds the first sync back that begins once it is armed.
private final class SyncGate: Sendable {
    private struct State {
        var isArmed = false
        var isHeld = false
        var isOpen = false
    }

    private let state = Mutex(State())

    var isHeld: Bool { state.withLock { $0.isHeld } }

    func arm() {
        state.withLock { $0.isArmed = true }
    }

    func open() {
        state.withLock { $0.isOpen = true }
    }

    func pass(_ call: StorageCall) {
        guard call.kind == .sync || call.kind == .syncMapping else { return }
        let isHeld = state.withLock { state in
            guard state.isArmed, !state.isHeld else { return false }
            state.isHeld = true
            return true
        }
        if isHeld { waitUntil { state.withLock { $0.isOpen } } }
    }
}
