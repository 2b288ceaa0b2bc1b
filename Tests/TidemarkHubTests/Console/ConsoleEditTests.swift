import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Edits at the console: they reach the store, are heard of like those of replicas, overwrite
/// nothing that was not seen, and are in the audit file.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ConsoleEditTests {
    private static func put(
        _ dataset: String, _ key: String, _ value: String, at: String? = nil
    ) -> String {
        let seen = at.map { #", "at": "\#($0)""# } ?? ""
        return #"{"dataset": "\#(dataset)", "key": "\#(key)", "value": "\#(value)"\#(seen)}"#
    }

    @Test("a record is put, changed and deleted, each time over what was seen and nothing else")
    func records() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("shared")
            let first = try await fixture.ask(.put, body: Self.put("shared", "k", "one"))
            #expect(try dataset.text("k") == "one")
            let at = try #require(first["dot"]?.text)
            // Who has not seen it does not overwrite it, nor who has seen something else.
            let blind = Self.put("shared", "k", "two")
            #expect(try await fixture.refusal(.put, body: blind) == .resourceConflict)
            let second = try await fixture.ask(.put, body: Self.put("shared", "k", "two", at: at))
            let stale = Self.put("shared", "k", "three", at: at)
            #expect(try await fixture.refusal(.put, body: stale) == .resourceConflict)
            #expect(try dataset.text("k") == "two")
            let id = try #require(second["id"]?.text)
            let now = try #require(second["dot"]?.text)
            let binary = try await fixture.ask(
                .put,
                body:
                    #"{"dataset": "shared", "id": "\#(id)", "valueBase64": "/wA=","#
                    + #" "at": "\#(now)"}"#
            )
            #expect(try dataset.get("k") == [0xFF, 0x00])
            let last = try #require(binary["dot"]?.text)
            let deleted = try await fixture.ask(
                .delete, body: #"{"dataset": "shared", "id": "\#(id)", "at": "\#(last)"}"#)
            #expect(deleted["isDeleted"] == .bool(true))
            #expect(try dataset.get("k") == nil)
            #expect(
                try await fixture.refusal(.put, body: Self.put("no", "k", "v")) == .resourceNotFound
            )
        }
    }

    @Test("what is written for an identity keeps its limits, moves its count and wakes its devices")
    func identity() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            let dataset = try fixture.base.dataset("notes", of: alice, ["a": "1"])
            let device = DeviceConnection(
                device: try #require(DeviceID("d")), identity: alice.id, pool: alice.pool,
                endsAt: .max)
            #expect(fixture.parts.pools.connected.open(device))
            device.begin(["notes": 1])
            _ = device.take()
            let count = try DatasetCount.current(of: dataset.name, in: fixture.store)
            _ = try await fixture.ask(.put, body: Self.put(dataset.name, "b", "2"))
            let now = try DatasetCount.current(of: dataset.name, in: fixture.store)
            #expect(now == count + 1)
            #expect(device.take().counts.map(\.count) == [now])
            let long = String(repeating: "k", count: 1_025)
            #expect(
                try await fixture.refusal(.put, body: Self.put(dataset.name, long, "v"))
                    == .invalidParameter)
            let large = String(repeating: "v", count: 1_048_575)
            #expect(
                try await fixture.refusal(.put, body: Self.put(dataset.name, "c", large))
                    == .limitExceeded)
            #expect(try dataset.get("c") == nil)
        }
    }

    @Test("nothing is written for an identity that is not in use any more")
    func endedIdentity() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            let dataset = try fixture.base.dataset("notes", of: alice)
            try fixture.base.identities.change(alice.id, in: fixture.store) { facts, _ in
                facts.isEnabled = false
            }
            #expect(
                try await fixture.refusal(.put, body: Self.put(dataset.name, "a", "1"))
                    == .resourceConflict)
            #expect(try dataset.count() == 0)
        }
    }

    @Test("a device that is revoked is forgotten with its subscriptions, and its connection closed")
    func devices() async throws {
        try await ConsoleFixture.with { fixture in
            let alice = try fixture.base.identity("alice")
            let name = try fixture.base.dataset("notes", of: alice, ["a": "1"]).name
            let id = try #require(DeviceID("phone"))
            let device = DeviceBook.Device(id: id, platform: .gcm, token: "t", created: 1)
            try fixture.store.dataset(DeviceBook.devicesName).put(
                device.encoded, for: DeviceBook.deviceKey(alice.id, id))
            try fixture.store.dataset(DeviceBook.subscriptionsName).put(
                DeviceBook.subscription(told: 1), for: DeviceBook.subscriptionKey(name, id))
            let connection = DeviceConnection(
                device: id, identity: alice.id, pool: alice.pool, endsAt: .max)
            #expect(fixture.parts.pools.connected.open(connection))
            let body = #"{"identity": "\#(alice.id)", "device": "phone"}"#
            _ = try await fixture.ask(.revoke, body: body)
            #expect(connection.take().isClosed)
            #expect(try await fixture.ask(.devices).rows.isEmpty)
            #expect(try DeviceBook.subscribers(of: name, in: fixture.store).isEmpty)
            #expect(try await fixture.refusal(.revoke, body: body) == .resourceNotFound)
        }
    }

    @Test("the audit file has each edit when it was asked for and what came of it, and no value")
    func audit() async throws {
        try await ConsoleFixture.with { fixture in
            _ = try fixture.store.dataset("shared")
            _ = try await fixture.ask(.put, body: Self.put("shared", "k", "very secret"))
            _ = try await fixture.refusal(.put, body: Self.put("shared", "k", "other"))
            let answer = try await fixture.ask(.audit)
            #expect(!answer.description.contains("very secret"))
            let rows = answer.rows
            #expect(rows.map { $0["state"]?.text } == ["refused", "asked", "done", "asked"])
            #expect(rows[0]["id"] == rows[1]["id"] && rows[1]["id"] != rows[2]["id"])
            #expect(rows[0]["code"]?.text == APIFailure.Kind.resourceConflict.rawValue)
            #expect(rows.allSatisfy { $0["dataset"]?.text == "shared" && $0.shown("key") == "k" })
            #expect(rows.allSatisfy { $0["address"]?.text == "192.0.2.1" })
            let path = "\(fixture.store.path)/\(ConsoleAudit.fileName)"
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            _ = try await fixture.refusal(.put, body: Self.put("shared", "k", "once more"))
            let after = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(after.count > before.count && after.starts(with: before))
        }
    }

    @Test("of an audit file of any length only its end is read, and all of it page by page")
    func longAudit() async throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/audit"
        let count = 2_500
        let padding = String(repeating: "x", count: 400)
        let lines = (0..<count).map { #"{"number": \#($0), "padding": "\#(padding)"}"# }
        // A crash has cut a line off.
        let text = lines.joined(separator: "\n") + "\n{\"number\": "
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let audit = ConsoleAudit(path: path)
        var (numbers, before, pages) = ([Int](), UInt64.max, 0)
        while true {
            let answer = try JSONValue(parsing: try await audit.answer(before: before))
            #expect(answer.rows.count <= ConsoleLimits.rowsMax)
            numbers += answer.rows.compactMap { $0["number"]?.integer }
            pages += 1
            guard let next = answer["next"]?.integer else { break }
            before = UInt64(next)
        }
        #expect(numbers == (0..<count).reversed())
        #expect(pages > 4)
        let none = try await ConsoleAudit(path: path + "-none").answer(before: .max)
        #expect(try JSONValue(parsing: none).rows.isEmpty)
    }

    @Test("an edit that cannot be noted is not made")
    func unwritableAudit() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("shared")
            // A directory in its place.
            try FileManager.default.createDirectory(
                atPath: "\(fixture.store.path)/\(ConsoleAudit.fileName)",
                withIntermediateDirectories: false)
            #expect(
                try await fixture.refusal(.put, body: Self.put("shared", "k", "v"))
                    == .serviceUnavailable)
            #expect(try dataset.get("k") == nil)
        }
    }
}
