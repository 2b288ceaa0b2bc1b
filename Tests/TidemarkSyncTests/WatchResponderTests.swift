import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// The answering side of a watch: when it answers, and what.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct WatchResponderTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    private func ask(_ items: [WatchRequest.Item], wait: Int) throws -> [UInt8] {
        try SyncMessage.watch(
            WatchRequest(
                from: a.store.replicaID, to: b.store.replicaID, waitMilliseconds: wait,
                items: items)
        ).encoded()
    }

    private func answer(_ bytes: [UInt8]) throws -> SyncMessage {
        try SyncMessage(MessageFrame.decoded(bytes))
    }

    @Test func theAnswerTellsWhatIsAhead() async throws {
        try b.dataset("x").put("1", for: "key")
        try b.dataset("y").put("1", for: "key")
        let (x, y) = (try b.dataset("x").syncCount, try b.dataset("y").syncCount)
        let request = try ask(
            [
                WatchRequest.Item(dataset: "x", since: x),
                WatchRequest.Item(dataset: "y", since: .zero),
                WatchRequest.Item(dataset: "unknown", since: .zero),
            ], wait: 1_000)
        let news = [WatchRequest.Item(dataset: "y", since: y)]
        let responder = b.responder
        #expect(
            try answer(responder.respond(to: request))
                == .watchAnswer(WatchAnswer(hasWaited: false, news: news)))
        #expect(
            try answer(await responder.watch(request, environment: time))
                == .watchAnswer(WatchAnswer(hasWaited: true, news: news)))
    }

    @Test func theAnswerWaitsForAChangeTheTimeOrTheEnd() async throws {
        try b.dataset().put("1", for: "key")
        let since = try b.dataset().syncCount
        let request = try ask([WatchRequest.Item(dataset: "notes", since: since)], wait: 5_000)
        let (responder, time) = (b.responder, self.time)
        func begin() async -> Task<[UInt8], Never> {
            let task = Task { await responder.watch(request, environment: time) }
            await time.untilAsleep()
            return task
        }
        let nothing = SyncMessage.watchAnswer(WatchAnswer(hasWaited: true, news: []))
        let timed = await begin()
        try b.dataset("other").put("1", for: "key")
        time.advance(by: .seconds(5))
        #expect(try answer(await timed.value) == nothing)
        let cancelled = await begin()
        cancelled.cancel()
        #expect(try answer(await cancelled.value) == nothing)
        let told = await begin()
        try b.dataset().put("2", for: "key")
        let count = try b.dataset().syncCount
        #expect(
            try answer(await told.value)
                == .watchAnswer(
                    WatchAnswer(
                        hasWaited: true, news: [WatchRequest.Item(dataset: "notes", since: count)]))
        )
    }

    @Test func otherRequestsAndNonsenseAreAnsweredAsEver() async throws {
        let responder = b.responder
        let hello = try SyncMessage.hello(
            HelloRequest(versions: 1...1, from: a.store.replicaID, names: nil, after: nil)
        ).encoded()
        for request in [hello, [], Array("TMSY".utf8), try ask([], wait: 0)] {
            #expect(
                try answer(await responder.watch(request, environment: time))
                    == answer(responder.respond(to: request)))
        }
        let misnamed = try ask([WatchRequest.Item(dataset: "no name", since: 0)], wait: 1_000)
        guard
            case .failure(let failure) = try answer(
                await responder.watch(misnamed, environment: time))
        else {
            Issue.record("the name was accepted")
            return
        }
        #expect(failure.code == "badMessage")
    }
}
