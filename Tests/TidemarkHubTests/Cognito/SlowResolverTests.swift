import Synchronization
import TestSupport
import Testing

@testable import TidemarkHub

/// Strategies that take their time.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SlowResolverTests {
    /// Takes as long for each conflict as it may.
    private final class Resolver: ConflictResolver {
        private let state = Mutex<(clock: VirtualEnvironment?, asked: Int)>((nil, 0))

        var asked: Int { state.withLock { $0.asked } }

        func begin(_ clock: VirtualEnvironment) {
            state.withLock { $0.clock = clock }
        }

        func decision(
            _ conflict: RecordConflict, _ context: UpdateContext
        ) async throws(APIFailure) -> ConflictDecision {
            let clock = state.withLock { state in
                state.asked += 1
                return state.clock
            }
            clock?.advance(by: .seconds(5))
            return .put("settled")
        }
    }

    @Test("many conflicts of a call do not take their time one after another without end")
    func bounded() async throws {
        let resolver = Resolver()
        try await withCognito(hooks: CognitoFixture.Hooks(resolver: resolver)) { fixture in
            resolver.begin(fixture.time)
            let device = CognitoDevice(fixture: fixture)
            let keys = (0..<20).map { "key \($0)" }
            try await device.sync(keys.map { Patch.put("first", $0) })
            try await device.sync(keys.map { Patch.put("second", $0, 1) })
            let refused = try await refusal {
                try await device.sync(keys.map { Patch.put("late", $0, 1) })
            }
            #expect(refused?.kind == .invalidTriggerOutput)
            #expect(resolver.asked == 6)
            let few = try await device.sync(keys.prefix(6).map { Patch.put("late", $0, 1) })
            #expect(few.map(\.value) == Array(repeating: "settled", count: 6))
        }
    }
}
