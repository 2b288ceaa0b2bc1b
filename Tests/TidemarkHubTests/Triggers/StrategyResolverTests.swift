import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Conflicts settled at the hub.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct StrategyResolverTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static func conflict(
        _ incoming: String?, _ existing: String?, ancestor: String? = nil, sent: Int64? = nil
    ) -> RecordConflict {
        RecordConflict(
            key: "k", incoming: incoming, existing: existing, ancestor: ancestor,
            incomingMilliseconds: sent, existingMilliseconds: 1_000)
    }

    /// What the strategy of a pool decides.
    private func decision(
        _ conflict: RecordConflict, by strategy: PoolBehavior.Strategy, dataset: String = "notes",
        datasets: [String: PoolBehavior.Strategy] = [:]
    ) async throws -> ConflictDecision {
        let world = try PoolWorld(try directory.store("hub")) { behavior in
            behavior.strategy = strategy
            behavior.datasetStrategies = datasets
        }
        let context = try world.context(dataset, of: world.alice)
        do throws(APIFailure) {
            let decision = try await world.parts.resolver.decision(conflict, context)
            try? await world.end()
            return decision
        } catch {
            try? await world.end()
            throw error
        }
    }

    @Test("without a strategy a conflict is refused, as in Cognito Sync")
    func reject() async throws {
        #expect(try await decision(Self.conflict("a", "b"), by: .reject) == .reject)
    }

    @Test("the last writer is the one that comes now")
    func lastWriter() async throws {
        let strategy = PoolBehavior.Strategy.lastWriterWins(usesDeviceDates: false)
        let late = Self.conflict("a", "b", sent: 1)
        #expect(try await decision(late, by: strategy) == .put("a"))
        #expect(try await decision(Self.conflict(nil, "b"), by: strategy) == .remove)
    }

    @Test("by the clocks of devices an older date loses, and none counts as now")
    func deviceDates() async throws {
        let strategy = PoolBehavior.Strategy.lastWriterWins(usesDeviceDates: true)
        let older = Self.conflict("a", "b", sent: 999)
        let equal = Self.conflict("a", "b", sent: 1_000)
        let silent = Self.conflict("a", "b")
        #expect(try await decision(older, by: strategy) == .keepExisting)
        #expect(try await decision(equal, by: strategy) == .put("a"))
        #expect(try await decision(silent, by: strategy) == .put("a"))
    }

    @Test("a dataset's own strategy goes before the pool's")
    func datasets() async throws {
        let datasets: [String: PoolBehavior.Strategy] = [
            "notes": .lastWriterWins(usesDeviceDates: false)
        ]
        let conflict = Self.conflict("a", "b")
        #expect(try await decision(conflict, by: .reject, datasets: datasets) == .put("a"))
        #expect(
            try await decision(conflict, by: .reject, dataset: "tasks", datasets: datasets)
                == .reject)
    }

    @Test("changes of both sides are merged, by what both started from")
    func merge() async throws {
        let conflict = Self.conflict(
            #"{"a":1,"b":2}"#, #"{"a":3,"b":1}"#, ancestor: #"{"a":1,"b":1}"#)
        let decision = try await decision(conflict, by: .autoMerge(AutoMerge()))
        guard case .put(let text) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(try JSONValue(parsing: Array(text.utf8)) == ["a": 3, "b": 2])
    }

    @Test("what is no JSON is refused, and a deletion yields to a change")
    func unmergeable() async throws {
        let rules = PoolBehavior.Strategy.autoMerge(AutoMerge())
        #expect(try await decision(Self.conflict("a", "b"), by: rules) == .reject)
        #expect(try await decision(Self.conflict("1", "b"), by: rules) == .reject)
        #expect(try await decision(Self.conflict(nil, "b"), by: rules) == .keepExisting)
        #expect(try await decision(Self.conflict("a", nil), by: rules) == .put("a"))
        let unchanged = Self.conflict(nil, "b", ancestor: "b")
        #expect(try await decision(unchanged, by: rules) == .remove)
    }

    @Test("two devices that come to the same have nothing to merge")
    func equalSides() async throws {
        let rules = PoolBehavior.Strategy.autoMerge(AutoMerge(rules: .appSync(server: .earlier)))
        for text in [#"{"l":[1]}"#, "no JSON", nil] {
            let conflict = Self.conflict(text, text, ancestor: #"{"l":[]}"#)
            #expect(try await decision(conflict, by: rules) == .keepExisting)
        }
    }

    @Test("AppSync's rules keep what the server has")
    func appSync() async throws {
        let rules = AutoMerge(rules: .appSync(server: .earlier))
        let conflict = Self.conflict(#"{"a":2,"l":[2]}"#, #"{"a":1,"l":[1]}"#)
        let decision = try await decision(conflict, by: .autoMerge(rules))
        guard case .put(let text) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(try JSONValue(parsing: Array(text.utf8)) == ["a": 1, "l": [1, 2]])
    }

    @Test("a closure may resolve, reject and remove; what it throws refuses the update")
    func closure() async throws {
        struct Broken: Error {}
        for (resolution, expected) in [
            (HubResolution.resolve("x"), ConflictDecision.put("x")),
            (HubResolution.reject, ConflictDecision.reject),
            (HubResolution.remove, ConflictDecision.remove),
        ] {
            let found = try await decision(
                Self.conflict("a", "b", ancestor: "c"),
                by: .closure { conflict in
                    guard conflict.incoming == "a", conflict.existing == "b",
                        conflict.ancestor == "c", conflict.datasetName == "notes"
                    else { throw Broken() }
                    return resolution
                })
            #expect(found == expected)
        }
        await #expect(throws: APIFailure.self) {
            try await decision(Self.conflict("a", "b"), by: .closure { _ in throw Broken() })
        }
    }

    @Test("what an endpoint is asked, and what it may answer")
    func endpoint() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let context = try world.context("notes", of: world.alice)
        let question = StrategyResolver.question(Self.conflict("a", nil), context)
        let expected: JSONValue = [
            "identityPoolId": .string(world.pool.text), "identityId": .string(world.alice.text),
            "datasetName": "notes", "key": "k", "incoming": "a", "existing": .null,
            "ancestor": .null,
        ]
        #expect(try JSONValue(parsing: question) == expected)
        let answers: [(String, ConflictDecision)] = [
            (#"{"action": "RESOLVE", "value": "x"}"#, .put("x")),
            (#"{"action": "REJECT"}"#, .reject),
            (#"{"action": "REMOVE", "value": null}"#, .remove),
        ]
        for (answer, decision) in answers {
            #expect(try StrategyResolver.decision(Array(answer.utf8)) == decision)
        }
        for answer in ["", "{}", #"{"action": "RESOLVE"}"#, #"{"action": "resolve"}"#, "[]"] {
            #expect(throws: APIFailure.self) {
                try StrategyResolver.decision(Array(answer.utf8))
            }
        }
        try await world.end()
    }
}
