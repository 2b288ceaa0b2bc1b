import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// One record of the console: its bytes, its versions, and the conflicts of it that wait.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ConsoleRecordTests {
    @Test(
        "bytes are shown as text where they are UTF-8, whole characters of it, and else as digits")
    func shownBytes() {
        let text = ShownBytes(Array("plain".utf8), bytesMax: 16)
        #expect(text.text == "plain" && !text.isCut && text.byteCount == 5)
        let binary = ShownBytes([0xFF, 0x00, 0x80], bytesMax: 16)
        #expect(binary.text == nil && binary.hexadecimal == "ff0080")
        #expect(ShownBytes([], bytesMax: 16).text == "")
        // Every cut of a text of characters of 1...4 bytes is text.
        let bytes = Array("aé€😀b😀€éa".utf8)
        for start in 0...bytes.count {
            for bytesMax in 4...bytes.count {
                let shown = ShownBytes(bytes, from: start, bytesMax: bytesMax)
                #expect(shown.text != nil, "\(start), \(bytesMax)")
                #expect(shown.end - shown.start <= bytesMax && shown.end <= bytes.count)
            }
        }
        // Parts that begin where the one before ended are the whole.
        var (whole, from) = ("", 0)
        while from < bytes.count {
            let part = ShownBytes(bytes, from: from, bytesMax: 4)
            whole += part.text ?? "?"
            from = part.end
        }
        #expect(whole == "aé€😀b😀€éa")
    }

    @Test("hostile keys and values come as they are, as text of JSON, and long ones in parts")
    func hostileBytes() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("shared")
            let script = #"<script>alert("1")</script>"#
            let direction = "\u{202E}txt.exe\u{202C}\u{0000}"
            let long = String(repeating: "0123456789abcdef", count: 65_536)
            try dataset.put(script, for: script)
            try dataset.put(direction, for: direction)
            try dataset.put(long, for: "long")
            try dataset.put([0xFF, 0xFE], for: [0xC3, 0x28])
            for text in [script, direction] {
                let record = try await fixture.ask(
                    .record, "dataset=shared&id=\(ConsoleFixture.id(text))")
                #expect(record.shown("key") == text && record.shown("value") == text)
            }
            let binary = try await fixture.ask(
                .record, "dataset=shared&id=\(RecordReference.key([0xC3, 0x28]).text)")
            #expect(binary["key"]?["hex"]?.text == "c328")
            #expect(binary["value"]?["hex"]?.text == "fffe")
            var (whole, from) = ("", 0)
            while from < long.utf8.count {
                let part = try await fixture.ask(
                    .record, "dataset=shared&id=\(ConsoleFixture.id("long"))&from=\(from)")
                let value = try #require(part["value"])
                let text = try #require(value["text"]?.text)
                #expect(text.utf8.count <= ConsoleLimits.valueBytesDefault)
                whole += text
                from = value["to"]?.integer ?? long.utf8.count
            }
            #expect(whole == long)
        }
    }

    @Test("a key that is too long for a link is named by its place, and found by it")
    func longKeys() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try fixture.store.dataset("shared")
            let keys = ["a", "b", "c"].map { String(repeating: $0, count: 5_000) }
            for key in keys { try dataset.put("of \(key.prefix(1))", for: key) }
            let all = try await fixture.all(.records, "dataset=shared", limit: 1)
            #expect(all.rows.compactMap { $0["id"]?.text } == ["c1", "c2", "c3"])
            let record = try await fixture.ask(.record, "dataset=shared&id=c2")
            #expect(record.shown("value") == "of b")
            try dataset.put("again", for: keys[1])
            #expect(
                try await fixture.refusal(.record, "dataset=shared&id=c2") == .resourceNotFound)
        }
    }

    /// Two versions that know nothing of each other, one of them waiting, over one that both know.
    private func conflict(in fixture: ConsoleFixture) async throws -> Dataset {
        let directory = try TemporaryDirectory()
        let other = try directory.store("other")
        let dataset = try fixture.store.dataset("shared")
        try dataset.put("base", for: "key")
        let transport = InMemoryTransport(SyncResponder(store: other))
        _ = try await dataset.synchronize(with: transport, options: SyncOptions())
        try dataset.put("ours", for: "key")
        try other.dataset("shared").put("theirs", for: "key")
        let error = await #expect(throws: SyncError.self) {
            try await dataset.synchronize(
                with: transport, options: SyncOptions(policy: .leavePending))
        }
        #expect(error?.code == .conflictPending)
        try other.close()
        return dataset
    }

    @Test("the history of a record is a graph: what waits stands beside what is here")
    func history() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try await conflict(in: fixture)
            let history = try await fixture.ask(
                .history, "dataset=shared&id=\(ConsoleFixture.id("key"))")
            let versions = history["versions"]?.elements ?? []
            #expect(versions.compactMap { $0.shown("value") }.first == "theirs")
            let local = try #require(versions.first { $0.shown("value") == "ours" })
            let remote = try #require(versions.first { $0.shown("value") == "theirs" })
            #expect(remote["waitsFor"]?.text != nil && local["waitsFor"] == nil)
            if let base = versions.first(where: { $0.shown("value") == "base" }) {
                let parent = try #require(base["dot"])
                #expect(local["parents"]?.elements == [parent])
                #expect(remote["parents"]?.elements == [parent])
                #expect(base["parents"]?.elements == [])
            }
            let present = try #require(try dataset.record(for: "key"))
            #expect(local["dot"]?.text == ConsoleNames.text(of: present.version.dot))
        }
    }

    @Test("a conflict is shown with both sides, settled at the console, and then in the journal")
    func settling() async throws {
        try await ConsoleFixture.with { fixture in
            let dataset = try await conflict(in: fixture)
            let list = try await fixture.ask(.conflicts)
            #expect(list.rows.map { $0["dataset"]?.text } == ["shared"])
            let query = "dataset=shared&id=\(ConsoleFixture.id("key"))"
            let found = try #require(try await fixture.ask(.conflict, query).rows.first)
            #expect(found["local"]?.shown("value") == "ours")
            #expect(found["remote"]?.shown("value") == "theirs")
            let at = try #require(found["local"]?["dot"]?.text)
            func body(_ at: String) -> String {
                #"{"dataset": "shared", "id": "\#(ConsoleFixture.id("key"))", "at": "\#(at)","#
                    + #" "resolution": "value", "value": "both"}"#
            }
            let stale = fixture.store.replicaID.description + ":99"
            #expect(try await fixture.refusal(.resolve, body: body(stale)) == .resourceConflict)
            #expect(try dataset.text("key") == "ours")
            _ = try await fixture.ask(.resolve, body: body(at))
            #expect(try dataset.text("key") == "both")
            #expect(try await fixture.ask(.conflicts).rows.isEmpty)
            let settled = try #require(
                try await fixture.ask(.conflicts, "state=settled").rows.first)
            #expect(settled["policy"]?.text == "application")
            #expect(settled["outcome"]?.shown("value") == "both")
            #expect(try await fixture.refusal(.conflict, query) == .resourceNotFound)
        }
    }
}
