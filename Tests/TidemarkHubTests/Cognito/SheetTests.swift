import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// What is kept beside the records, and the tokens that are kept nowhere.
struct SheetTests {
    @Test("entries are read as they were stored, and nothing else is one")
    func entries() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<200 {
            let entry = SheetEntry(
                position: generator.next(),
                lastModifiedBy: String(repeating: "ä", count: generator.below(20)),
                deviceMilliseconds: generator.oneIn(2) ? nil : Int64(generator.below(1 << 50)),
                mark: generator.oneIn(2)
                    ? nil : CallMark(high: generator.next(), low: generator.next()))
            let bytes = entry.encoded
            #expect(SheetEntry(encoded: bytes) == entry)
            for length in 0..<bytes.count {
                #expect(SheetEntry(encoded: Array(bytes[..<length])) != entry)
            }
            #expect(SheetEntry(encoded: [1] + bytes.dropFirst()) == nil)
        }
        #expect(SheetEntry(encoded: []) == nil)
        let tooLong = [UInt8](repeating: 65, count: SheetEntry.authorBytesMax + 1)
        let head: [UInt8] = [2, 0, 0, 0, 0, 0, 0, 0, 1]
        for tail: [UInt8] in [[0] + tooLong, [0, 0xFF], [4], [1, 0, 0], [2, 0, 0]] {
            #expect(SheetEntry(encoded: head + tail) == nil)
        }
    }

    @Test("a call is known again by its session, its writer and each part of its patches")
    func marks() throws {
        let time = VirtualEnvironment()
        time.setRandoms([1, 2])
        let secrets = try HubSecrets(keys: [[UInt8](repeating: 1, count: 32)])
        func session() throws -> SyncSession {
            let token = SyncSession.token(of: "a:b:c", at: 7, time, secrets)
            return try SyncSession(token: token, of: "a:b:c", time, secrets)
        }
        func patch(
            _ key: String, _ value: String?, _ count: Int64 = 0, date: Double? = nil
        ) throws -> RecordPatch {
            let body = RecordPatchBody(
                operation: value == nil ? "remove" : "replace", key: key, value: value,
                syncCount: count, deviceLastModifiedDate: date)
            return try RecordPatch(body, at: 0, HubLimits())
        }
        let (one, other) = (try session(), try session())
        #expect(one.id != other.id)
        let calls: [(SyncSession, String, [RecordPatch])] = [
            (one, "a", [try patch("k", "v")]), (other, "a", [try patch("k", "v")]),
            (one, "b", [try patch("k", "v")]), (one, "a", [try patch("kv", "")]),
            (one, "a", [try patch("k", nil)]), (one, "a", [try patch("k", "")]),
            (one, "a", [try patch("k", "v", 1)]), (one, "a", [try patch("k", "v", date: 0)]),
            (one, "a", [try patch("k", "v"), try patch("l", nil)]),
            (one, "a", [try patch("l", nil), try patch("k", "v")]),
        ]
        func all() -> [CallMark] {
            calls.map { CallMark(session: $0.0, author: $0.1, patches: $0.2) }
        }
        #expect(all() == all())
        #expect(Set(all()).count == calls.count)
    }

    @Test("session tokens are of one dataset and one time, and of these secrets")
    func sessions() throws {
        let time = VirtualEnvironment()
        let secrets = try HubSecrets(keys: [[UInt8](repeating: 1, count: 32)])
        let others = try HubSecrets(keys: [[UInt8](repeating: 2, count: 32)])
        let token = SyncSession.token(of: "a:b:c", at: 7, time, secrets)
        #expect(try SyncSession(token: token, of: "a:b:c", time, secrets).position == 7)
        func isRefused(_ token: String?, _ name: String, _ secrets: HubSecrets) -> Bool {
            do throws(APIFailure) {
                _ = try SyncSession(token: token, of: name, time, secrets)
                return false
            } catch {
                return error.kind == .invalidParameter
            }
        }
        #expect(isRefused(nil, "a:b:c", secrets))
        #expect(isRefused("", "a:b:c", secrets))
        #expect(isRefused("x", "a:b:c", secrets))
        #expect(isRefused(token, "a:b:d", secrets))
        #expect(isRefused(token, "a:b:c", others))
        #expect(isRefused(String(token.dropLast()), "a:b:c", secrets))
        let page = RecordPageToken(through: 1, count: 1, last: 1, since: 0, isDeleted: false)
        #expect(isRefused(page.sealed(of: "a:b:c", secrets), "a:b:c", secrets))
        time.advance(by: .seconds(899))
        #expect(!isRefused(token, "a:b:c", secrets))
        time.advance(by: .seconds(1))
        #expect(isRefused(token, "a:b:c", secrets))
    }

    @Test("tokens of pages are of one listing, and come back as they were")
    func pages() throws {
        let secrets = try HubSecrets(keys: [[UInt8](repeating: 1, count: 32)])
        let page = RecordPageToken(through: 9, count: 7, last: 5, since: 2, isDeleted: true)
        let token = page.sealed(of: "a:b:c", secrets)
        #expect(try RecordPageToken(token, of: "a:b:c", secrets) == page)
        #expect(throws: PageToken.foreign) {
            try RecordPageToken(token, of: "a:b:d", secrets)
        }
        let names = NamePageToken(last: "notes").sealed(.datasets, of: "a:b", secrets)
        #expect(try NamePageToken(names, .datasets, of: "a:b", secrets).last == "notes")
        #expect(throws: PageToken.foreign) {
            try NamePageToken(names, .pools, of: "a:b", secrets)
        }
        #expect(throws: PageToken.foreign) {
            try NamePageToken(names, .datasets, of: "a:c", secrets)
        }
        #expect(throws: PageToken.foreign) { try RecordPageToken(names, of: "a:b:c", secrets) }
    }

    private static func facts(_ position: UInt64, incarnation: UInt64 = 1) -> DatasetFacts {
        DatasetFacts(
            incarnation: incarnation, lifecycle: 1, position: position, map: CountMap())
    }

    @Test("the cache is bounded, keeps what is asked for, and never goes back")
    func cache() {
        let cache = TotalsCache(costMax: 16 * 2 * 4)
        cache.keep(Self.facts(5), of: "a")
        cache.keep(Self.facts(4), of: "a")
        #expect(cache["a"]?.position == 5)
        cache.keep(Self.facts(1, incarnation: 2), of: "a")
        #expect(cache["a"]?.position == 1)
        for index in 0..<2_000 {
            cache.keep(Self.facts(1), of: "b\(index)")
            #expect(cache["a"] != nil)
        }
        let kept = (0..<2_000).count(where: { cache["b\($0)"] != nil })
        #expect(kept <= 16 * 2 * 5)
        cache.forget("a")
        #expect(cache["a"] == nil)
    }
}
