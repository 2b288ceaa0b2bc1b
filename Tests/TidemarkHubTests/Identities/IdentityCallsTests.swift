import TestSupport
import Testing

@testable import TidemarkHub

/// Who has calls under way is counted exactly.
struct IdentityCallsTests {
    @Test("identities are quiet when as many calls have ended as have begun")
    func counting() throws {
        var generator = SeededGenerator(Seed.drawn())
        let names = ["us-east-1:a", "us-east-1:b", "us-east-1:c"]
        let ids = try names.map { try #require(IdentityID($0)) }
        let calls = IdentityCalls()
        var underWay: [IdentityID: [IdentityPass]] = [:]
        for _ in 0..<2_000 {
            let id = generator.element(of: ids)
            if generator.oneIn(2) {
                calls.begin(id)
                underWay[id, default: []].append(IdentityPass(id, calls))
            } else if let pass = underWay[id]?.popLast() {
                pass.end()
            }
            IdentityPass(nil, calls).end()
            for id in ids {
                let isQuiet = (underWay[id] ?? []).isEmpty
                try require(calls.areQuiet([id]) == isQuiet, "\(id) is miscounted")
            }
            try require(
                calls.areQuiet(Set(ids)) == underWay.values.allSatisfy { $0.isEmpty },
                "they are not all counted")
        }
        for passes in underWay.values {
            for pass in passes { pass.end() }
        }
        #expect(calls.areQuiet(Set(ids)))
    }
}
