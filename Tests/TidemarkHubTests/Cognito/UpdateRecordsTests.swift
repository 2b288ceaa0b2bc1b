import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What an update does, and when it is refused, rule by rule of the reference.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct UpdateRecordsTests {
    @Test("a stale count refuses the whole call, in words that clients know")
    func staleCounts() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.put("1", "a"), .put("1", "b")])
            try await device.sync([.put("2", "a", 1)])
            for count: UInt64 in [0, 1, 3] {
                let refused = try await refusal {
                    try await device.sync([.put("x", "b", 1), .put("y", "a", count)])
                }
                #expect(refused?.kind == .resourceConflict)
                #expect(refused?.message == "Current SyncCount for: a is: 2 not: \(count)")
            }
            let unknown = try await refusal { try await device.sync([.put("x", "new", 7)]) }
            #expect(unknown?.message == "Current SyncCount for: new is: 0 not: 7")
            #expect(try await device.list().contents == ["a": "2@2", "b": "1@1"])
        }
    }

    @Test("a removed record is changed only with the count of its removal")
    func overTombstones() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.put("1", "a")])
            try await device.sync([.remove("a", 1)])
            let refused = try await refusal { try await device.sync([.put("2", "a", 0)]) }
            #expect(refused?.message == "Current SyncCount for: a is: 2 not: 0")
            try await device.sync([.put("2", "a", 2)])
            #expect(try await device.list().contents == ["a": "2@3"])
        }
    }

    @Test("a removal of what was never there is told to others")
    func removalOfNothing() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.remove("a", 0)])
            #expect(try await device.list().contents == ["a": "-@1"])
        }
    }

    @Test("an update whose answer was lost is answered again, and changes nothing")
    func repeats() async throws {
        try await withCognitoDevice { device, fixture in
            let other = CognitoDevice(fixture: fixture, deviceID: "other")
            try await device.sync([.put("0", "b")])
            let session = try await device.list().syncSessionToken
            let patches: [Patch] = [.put("1", "a"), .remove("b", 1)]
            let first = try await device.update(patches, session: session)
            #expect(try await device.update(patches, session: session) == first)
            try await other.sync([.put("2", "c")])
            #expect(try await device.update(patches, session: session) == first)
            #expect(try await device.list().datasetSyncCount == 3)
            let changed: [Patch] = [.put("1", "a"), .put("2", "b", 1)]
            let refused = try await refusal {
                try await device.update(changed, session: session)
            }
            #expect(refused?.kind == .resourceConflict)
        }
    }

    @Test("what another device sends is no repeat, though it is the same to the byte")
    func sameValues() async throws {
        try await withCognito { fixture in
            let devices = (0..<4).map { CognitoDevice(fixture: fixture, deviceID: "d\($0)") }
            // Two of them do not say which they are.
            let all = devices + [CognitoDevice(fixture: fixture), CognitoDevice(fixture: fixture)]
            try await all[0].sync([.put("0", "count")])
            var sessions: [String] = []
            for device in all { sessions.append(try await device.list().syncSessionToken) }
            var passed = 0
            for (device, session) in zip(all, sessions) {
                let refused = try await refusal {
                    try await device.update([.put("1", "count", 1)], session: session)
                }
                if refused == nil { passed += 1 }
                let message = "Current SyncCount for: count is: 2 not: 1"
                #expect(refused == nil || refused == APIFailure(.resourceConflict, message))
                // Nor is it one with a token that is good.
                let stale = try await refusal { try await device.sync([.put("1", "count", 1)]) }
                #expect(stale == APIFailure(.resourceConflict, message))
            }
            #expect(passed == 1)
            let removal: [Patch] = [.remove("count", 2)]
            let late = try await all[1].list().syncSessionToken
            try await all[2].sync(removal)
            let refused = try await refusal { try await all[1].update(removal, session: late) }
            #expect(refused?.kind == .resourceConflict)
            #expect(try await all[0].list().contents == ["count": "-@3"])
        }
    }

    @Test("a repeat is refused once others have changed what it wrote, or deleted it")
    func lateRepeats() async throws {
        try await withCognitoDevice { device, fixture in
            let other = CognitoDevice(fixture: fixture, deviceID: "other")
            let session = try await device.list().syncSessionToken
            let patches: [Patch] = [.put("1", "a"), .put("1", "b")]
            try await device.update(patches, session: session)
            // The same value again is a change, too: somebody decided on it anew.
            try await other.sync([.put("1", "b", 1)])
            for _ in 0..<2 {
                let refused = try await refusal {
                    try await device.update(patches, session: session)
                }
                #expect(refused?.kind == .resourceConflict)
                if try await device.list().datasetExists { try await other.delete() }
            }
            try await other.sync(patches)
            let refused = try await refusal { try await device.update(patches, session: session) }
            #expect(refused?.kind == .resourceConflict)
        }
    }

    @Test("a repeat is not answered before what it repeats is durable")
    func durableRepeats() async throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let options = StoreOptions(durability: .disk, segmentBytes: 1 << 20)
        let fixture = try CognitoFixture(
            store: try Store.open(at: "/store", options: options, storage: storage))
        let device = CognitoDevice(fixture: fixture)
        try await device.sync([.put("0", "a")])
        let session = try await device.list().syncSessionToken
        storage.faults = [
            StorageFault(.diskFull, of: [.sync, .syncMapping, .syncDirectory], isLasting: true)
        ]
        for _ in 0..<3 {
            let refused = try await refusal {
                try await device.update([.put("1", "a", 1)], session: session)
            }
            #expect(refused?.kind == .serviceUnavailable)
            // It is there for all to see, and nobody knows for how long.
            #expect(try await device.list().contents == ["a": "1@2"])
        }
        try await fixture.threads.shutdown()
        try? fixture.store.close()
    }

    @Test("an update is refused when others have written since the listing, whatever the keys")
    func movedOn() async throws {
        try await withCognitoDevice { device, fixture in
            let other = CognitoDevice(fixture: fixture)
            try await device.sync([.put("1", "a")])
            let session = try await device.list().syncSessionToken
            try await other.sync([.put("2", "b")])
            let refused = try await refusal {
                try await device.update([.put("3", "c")], session: session)
            }
            #expect(refused?.kind == .resourceConflict)
            #expect(refused?.message.contains("ListRecords") ?? false)
            let native = try await device.list().syncSessionToken
            try fixture.dataset().put("4", for: "d")
            let again = try await refusal {
                try await device.update([.put("3", "c")], session: native)
            }
            #expect(again?.kind == .resourceConflict)
            try await device.sync([.put("3", "c")])
        }
    }

    @Test("of many who update at the same time after one listing just one goes through")
    func races() async throws {
        try await withCognitoDevice { device, _ in
            for round in 0..<10 {
                let session = try await device.list().syncSessionToken
                let outcomes = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for writer in 0..<8 {
                        group.addTask {
                            let failure = try await refusal {
                                try await device.update(
                                    [.put("w\(writer)", "r\(round)-w\(writer)")],
                                    session: session)
                            }
                            if let failure { #expect(failure.kind == .resourceConflict) }
                            return failure == nil
                        }
                    }
                    var outcomes: [Bool] = []
                    for try await outcome in group { outcomes.append(outcome) }
                    return outcomes
                }
                #expect(outcomes.count(where: { $0 }) == 1)
            }
            let listing = try await device.list()
            #expect(listing.count == 10 && listing.datasetSyncCount == 10)
        }
    }

    @Test("without a token of this dataset nothing is written")
    func tokens() async throws {
        try await withCognitoDevice { device, fixture in
            let foreign = CognitoDevice(fixture: fixture, dataset: "others")
            let token = try await foreign.list().syncSessionToken
            for session in [nil, "", "abc", token] {
                let refused = try await refusal {
                    try await device.update([.put("1", "a")], session: session)
                }
                #expect(refused?.kind == .invalidParameter)
            }
            let expired = try await device.list().syncSessionToken
            fixture.time.advance(by: .seconds(900))
            let refused = try await refusal {
                try await device.update([.put("1", "a")], session: expired)
            }
            #expect(refused?.kind == .invalidParameter)
            #expect(try await device.list().datasetExists == false)
        }
    }

    @Test(
        "patches out of shape are refused by name",
        arguments: [
            (#"{"Op":"replace","Key":"","Value":"1","SyncCount":0}"#, "RecordPatches[0].Key"),
            (#"{"Op":"replace","Value":"1","SyncCount":0}"#, "RecordPatches[0].Key"),
            (#"{"Op":"replace","Key":"a","SyncCount":0}"#, "RecordPatches[0].Value"),
            (#"{"Op":"replace","Key":"a","Value":null,"SyncCount":0}"#, "RecordPatches[0].Value"),
            (#"{"Op":"merge","Key":"a","Value":"1","SyncCount":0}"#, "RecordPatches[0].Op"),
            (#"{"Key":"a","Value":"1","SyncCount":0}"#, "RecordPatches[0].Op"),
            (#"{"Op":"replace","Key":"a","Value":"1"}"#, "RecordPatches[0].SyncCount"),
            (#"{"Op":"replace","Key":"a","Value":"1","SyncCount":-1}"#, "[0].SyncCount"),
            (
                #"{"Op":"remove","Key":"a","SyncCount":0,"DeviceLastModifiedDate":-1}"#,
                "[0].DeviceLastModifiedDate"
            ),
            (
                #"{"Op":"remove","Key":"a","SyncCount":0},{"Op":"remove","Key":"a","SyncCount":0}"#,
                "RecordPatches[1].Key"
            ),
        ])
    func malformed(patches: String, member: String) async throws {
        try await withCognitoDevice { device, fixture in
            let session = try await device.list().syncSessionToken
            let body = #"{"SyncSessionToken":"\#(session)","RecordPatches":[\#(patches)]}"#
            let refused = try await refusal {
                _ = try await fixture.answer("POST", device.path, body: Array(body.utf8))
            }
            #expect(refused?.kind == .invalidParameter)
            #expect(refused?.message.contains(member) ?? false)
            #expect(try await device.list().datasetExists == false)
        }
    }

    @Test(
        "a removal is one whatever value comes with it, as clients send it in three ways",
        arguments: ["", #","Value":null"#, #","Value":"""#, #","Value":"x""#])
    func removals(value: String) async throws {
        try await withCognito { fixture in
            let device = CognitoDevice(fixture: fixture)
            try await device.sync([.put("1", "a")])
            let session = try await device.list().syncSessionToken
            let patch = #"{"Op":"remove","Key":"a","SyncCount":1\#(value)}"#
            let body = #"{"SyncSessionToken":"\#(session)","RecordPatches":[\#(patch)]}"#
            let answer = try await fixture.answer("POST", device.path, body: Array(body.utf8))
            let told = try JSONValue(parsing: answer)["Records"]?.elements?.first
            #expect(told?["Key"]?.text == "a" && told?["SyncCount"]?.integer == 2)
            #expect(told?["Value"] == nil)
            #expect(try await device.list().contents == ["a": "-@2"])
        }
    }

    @Test("keys that look alike and have other bytes are other keys")
    func normalisation() async throws {
        try await withCognitoDevice { device, _ in
            // One letter, composed and of two scalars: equal as texts of Swift.
            let answer = try await device.sync([.put("1", "\u{E9}"), .put("2", "e\u{301}")])
            #expect(answer.count == 2)
            #expect(try await device.list().count == 2)
            #expect(try await device.describe().numRecords == 2)
        }
    }

    @Test("an update without patches changes nothing")
    func noPatches() async throws {
        try await withCognitoDevice { device, _ in
            let changed = try await device.sync([])
            #expect(changed.isEmpty)
            #expect(try await device.list().datasetExists == false)
        }
    }

    @Test("counts of calls are the same after the store was opened anew")
    func reopening() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("hub")
        let name = "\(CognitoFixture.identity):notes"
        let books = SyncBooks()
        let dataset = try store.dataset(name)
        var batch = WriteBatch()
        batch.put("1", for: "a", in: dataset)
        batch.put("2", for: "b", in: dataset)
        var map = CountMap()
        map.noteCall(after: 0, size: 2)
        let sheet = Sheet(of: name, in: try store.dataset(Sheet.datasetName))
        batch.put(map.encoded, for: sheet.mapKey, in: sheet.home)
        try store.write(batch, expecting: [(dataset: dataset, count: 0)])
        #expect(try books.facts(of: name, at: try dataset.knowledge(), in: store).count == 1)
        try store.close()
        let again = try directory.store("hub")
        let reopened = try #require(try again.existingDataset(name))
        let known = try books.facts(of: name, at: try reopened.knowledge(), in: again)
        #expect(known.count == 1 && known.incarnation == again.incarnation)
        try again.close()
    }

    @Test("a dataset that was written to keeps its deletions for devices")
    func peer() async throws {
        try await withCognitoDevice { device, fixture in
            try await device.sync([.put("1", "a")])
            try await device.sync([.remove("a", 1)])
            let dataset = try fixture.dataset()
            #expect(try dataset.peers().map(\.replica) == [CognitoPeer.replica])
            #expect(try dataset.peers().first?.tombstonesHeld == 1)
            try fixture.store.compact()
            #expect(try await device.list(since: 1).contents == ["a": "-@2"])
            let listing = try await device.list(since: 1)
            #expect(!listing.datasetDeletedAfterRequestedSyncCount)
        }
    }

    @Test("a dataset that replicas have made keeps its deletions once a device has listed it")
    func peerOfReplicas() async throws {
        try await withCognito { fixture in
            let dataset = try fixture.dataset()
            try dataset.put("1", for: "a")
            #expect(try dataset.peers().isEmpty)
            let device = CognitoDevice(fixture: fixture)
            #expect(try await device.list().datasetSyncCount == 1)
            #expect(try dataset.peers().map(\.replica) == [CognitoPeer.replica])
            try dataset.delete("a")
            try fixture.store.compact()
            let listing = try await device.list(since: 1)
            #expect(listing.contents == ["a": "-@2"])
            #expect(!listing.datasetDeletedAfterRequestedSyncCount)
        }
    }
}
