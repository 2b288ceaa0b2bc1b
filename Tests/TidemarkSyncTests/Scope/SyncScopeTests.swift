import Testing
import Tidemark

@testable import TidemarkSync

/// The conditions of partial replicas: what they mean, and how they travel.
struct SyncScopeTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func number(_ digits: String) throws -> JSONNumber {
        try #require(JSONNumber(digits))
    }

    @Test func aModelSaysTheSame() {
        print("aModelSaysTheSame: seed \(baseSeed)")
        var random = RandomScope(seed: baseSeed)
        var (matchCount, keyCount) = (0, 0)
        for _ in 0..<4_000 {
            let condition = random.condition()
            let scope = condition.scope
            for _ in 0..<10 {
                let (key, value) = (random.key(), random.value())
                let expected = condition.holds(key, try? JSONValue(parsing: value))
                #expect(
                    scope.matches(key: key, value: value) == expected,
                    "seed \(baseSeed): \(scope), \(key), \(String(decoding: value, as: UTF8.self))")
                matchCount += expected ? 1 : 0
                // What the key alone says holds for every value.
                if let known = scope.verdict(onKey: key) {
                    #expect(known == expected, "seed \(baseSeed): \(scope), \(key)")
                    keyCount += 1
                }
                #expect(!expected || scope.keyRange.contains(key), "seed \(baseSeed): \(scope)")
            }
        }
        // Neither everything nor nothing, or this would prove little.
        #expect((4_000..<36_000).contains(matchCount))
        #expect(keyCount > 4_000)
    }

    /// What surely holds another scope holds each of its records.
    @Test func whatHoldsAScopeHoldsItsRecords() {
        print("whatHoldsAScopeHoldsItsRecords: seed \(baseSeed)")
        var random = RandomScope(seed: baseSeed)
        var sureCount = 0
        for _ in 0..<4_000 {
            let (one, two) = (random.condition().scope, random.condition(depth: 1).scope)
            for (outer, inner) in [(one, two), (one, one && two), (one || two, one)] {
                let isSure = outer.surelyHolds(inner)
                // These the forms show, unless it is long.
                if inner != two { #expect(isSure, "seed \(baseSeed): \(outer), \(inner)") }
                guard isSure else { continue }
                sureCount += inner == two ? 1 : 0
                for _ in 0..<10 {
                    let (key, value) = (random.key(), random.value())
                    let isHeld =
                        !inner.matches(key: key, value: value)
                        || outer.matches(key: key, value: value)
                    #expect(isHeld, "seed \(baseSeed): \(outer), \(inner), \(key), \(value)")
                }
            }
        }
        #expect((40..<3_600).contains(sureCount))
    }

    @Test func whichScopesHoldOthers() {
        let open = SyncScope.field(["state"], .equals("open"))
        let due = SyncScope.field(["due"], .exists)
        let berlin = SyncScope.prefix("orders/berlin/")
        for (outer, inner) in [
            (SyncScope.everything, berlin), (berlin, .nothing), (berlin, berlin && open),
            (berlin || open, open && due), (.prefix("orders/"), berlin || .prefix("orders/rome/")),
            (berlin && open, open && .prefix("orders/berlin/7") && due), (!open, !open && berlin),
        ] {
            #expect(outer.surelyHolds(inner), "\(outer), \(inner)")
        }
        for (outer, inner) in [
            (berlin, SyncScope.everything), (.nothing, berlin), (berlin && open, berlin),
            (open && due, open), (berlin, .prefix("orders/")), (berlin, open), (!open, berlin),
            // Equal as texts, and not by their bytes.
            (.field(["name"], .hasPrefix("\u{e9}")), .field(["name"], .hasPrefix("e\u{301}"))),
        ] {
            #expect(!outer.surelyHolds(inner), "\(outer), \(inner)")
        }
    }

    /// Conditions within each other could be paired in ever so many ways.
    @Test func hostileScopesAreGivenUp() {
        var (outer, inner) = (SyncScope.field(["a"], .exists), SyncScope.field(["b"], .exists))
        for _ in 0..<7 {
            outer = SyncScope(.any([SyncScope.Node.all([outer.node, outer.node])]))
            inner = SyncScope(.all([SyncScope.Node.any([inner.node, inner.node])]))
        }
        #expect(!outer.surelyHolds(inner))
    }

    @Test func whatIsWrittenIsReadAgainAndNothingElseIs() throws {
        print("whatIsWrittenIsReadAgainAndNothingElseIs: seed \(baseSeed)")
        var random = RandomScope(seed: baseSeed)
        for _ in 0..<400 {
            let scope = random.condition().scope
            let encoded = scope.encoded
            #expect(try SyncScope(decoding: encoded).encoded == encoded)
            try scope.checkBounds()
            for count in encoded.indices {
                let cut = Array(encoded[..<count])
                #expect(throws: SyncError.self) { try SyncScope(decoding: cut) }
            }
            #expect(throws: SyncError.self) { try SyncScope(decoding: encoded + [0]) }
            for index in encoded.indices {
                var forged = encoded
                forged[index] = UInt8(random.below(256))
                // Whatever it has become, it is whole.
                guard let read = try? SyncScope(decoding: forged) else { continue }
                #expect(read.encoded == forged || read.encoded.count < forged.count)
                _ = read.matches(key: random.key(), value: random.value())
            }
        }
    }

    @Test func anUnknownFormIsRefused() {
        let error = #expect(throws: SyncError.self) { try SyncScope(decoding: [2, 3, 0]) }
        #expect(error?.code == .badMessage)
        #expect(error?.message.contains("update") ?? false)
    }

    @Test func scopesHaveBounds() throws {
        var deep = SyncScope.prefix("a")
        for _ in 1..<SyncScope.depthMax { deep = !deep }
        try deep.checkBounds()
        #expect(try SyncScope(decoding: deep.encoded) == deep)
        deep = !deep
        #expect(throws: StoreError.self) { try deep.checkBounds() }
        #expect(throws: SyncError.self) { try SyncScope(decoding: deep.encoded) }
        var wide = SyncScope.nothing
        for index in 0..<3_000 { wide = wide || .prefix("customer/\(index)/") }
        #expect(throws: StoreError.self) { try wide.checkBounds() }
        #expect(throws: SyncError.self) { try SyncScope(decoding: wide.encoded) }
        // A chain is not deep.
        #expect(wide.node.depth == 2)
    }

    @Test func numbersAreComparedByWhatTheyAreWorth() throws {
        let ordered = [
            "-1e400", "-12345678901234567890124", "-12345678901234567890123", "-10", "-9.5", "-1",
            "-1e-30", "0", "1e-400", "0.001", "0.0010000000000000000000001", "0.1", "1", "9.5",
            "10", "9007199254740992", "9007199254740993", "1e400", "1e99999999999999999999",
        ]
        for (left, one) in ordered.enumerated() {
            for (right, two) in ordered.enumerated() {
                let order = DecimalNumber(try number(one)).order(to: DecimalNumber(try number(two)))
                #expect(order.signum() == (left - right).signum(), "\(one) and \(two)")
            }
        }
        let groups = [
            ["1", "1.0", "10e-1", "0.1E+1"], ["0", "-0", "0e9", "0.000"], ["120", "1.2e2"],
        ]
        for group in groups {
            for one in group {
                for two in group {
                    let (left, right) = (try number(one), try number(two))
                    #expect(DecimalNumber(left).order(to: DecimalNumber(right)) == 0)
                }
            }
        }
    }

    @Test func fieldsOfDocuments() {
        let value = bytes(
            #"{"state":"open","owner":{"id":7},"tags":["red","blue",3],"done":false}"#)
        let passed: [SyncScope] = [
            .field(["state"], .equals("open")), .field(["owner", "id"], .isAtLeast(7)),
            .field(["tags"], .contains("blue")), .field(["tags"], .contains(3)),
            .field(["state"], .contains("pe")), .field(["state"], .hasPrefix("op")),
            .field(["done"], .equals(false)), .field(["owner"], .exists),
            !SyncScope.field(["missing"], .exists), .everything,
            .prefix("k") && .field(["done"], .exists),
        ]
        for scope in passed { #expect(scope.matches(key: bytes("key"), value: value), "\(scope)") }
        let failed: [SyncScope] = [
            .field(["state"], .equals("Open")), .field(["owner", "id"], .isGreater(than: 7)),
            .field(["owner", "id", "deeper"], .exists), .field(["tags"], .contains("re")),
            .field(["done"], .equals("false")), .field(["done"], .isAtMost("x")), .nothing,
            .prefix("x") || .field(["state"], .equals("closed")),
        ]
        for scope in failed { #expect(!scope.matches(key: bytes("key"), value: value), "\(scope)") }
        // A value that is no JSON has no fields.
        #expect(!SyncScope.field([], .exists).matches(key: bytes("key"), value: bytes("{")))
        #expect((!SyncScope.field([], .exists)).matches(key: bytes("key"), value: bytes("{")))
    }

    @Test func onlyWhatAKeyCanDecideIsDecidedByIt() {
        let field = SyncScope.field(["a"], .exists)
        #expect(SyncScope.prefix("a").verdict(onKey: bytes("ab")) == true)
        let both = SyncScope.prefix("a") && field
        let either = SyncScope.prefix("a") || field
        #expect(both.verdict(onKey: bytes("ab")) == nil)
        #expect(both.verdict(onKey: bytes("b")) == false)
        #expect(either.verdict(onKey: bytes("a")) == true)
        #expect((!field).verdict(onKey: bytes("a")) == nil)
        #expect(SyncScope.nothing.keyRange.isEmpty)
        let apart = SyncScope.prefix("a") || .prefix("c")
        #expect(apart.keyRange == KeyRange(from: "a", upTo: "d"))
        #expect(both.keyRange == .prefix("a"))
    }
}
