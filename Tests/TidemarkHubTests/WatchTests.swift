import Logging
import ServiceLifecycle
import TestSupport
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkHub

@testable import TidemarkSync

/// Announcements over real connections: the hub holds its answer back, and the wait ends with
/// whichever comes first of a change, the time, the caller and the hub.
///
///     a:    watch ───────────────┐ waits, without a thread        ┌─ news ─▶ exchange
///     hub:                       └──────────── put ───────────────┘
///
/// The time of the hub stands still unless a test lets it pass: whoever is answered did not wait it
/// out.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct WatchTests {
    let directory: TemporaryDirectory
    let hub: Store
    let a: Store
    let time = VirtualEnvironment()

    init() throws {
        directory = try TemporaryDirectory()
        hub = try directory.store("hub")
        a = try directory.store("a")
    }

    /// Asks for news of "notes" behind what the hub holds of it now.
    private static func watch(
        _ transport: HTTPTransport, from asker: Store, at hub: Store
    ) async throws -> WatchAnswer {
        let since = try hub.dataset("notes").syncCount
        let request = WatchRequest(
            from: asker.replicaID, to: hub.replicaID,
            waitMilliseconds: SyncLimits.watchMillisecondsMax,
            items: [WatchRequest.Item(dataset: "notes", since: since)])
        return try await PeerConnection(transport: transport).watch(request)
    }

    /// Time stands still for the asker, too, so that neither a poll nor another attempt ever comes
    /// due: nothing but a late answer can bring what is written at the hub.
    @Test func newsArriveWithoutPolling() async throws {
        let (hub, a, time) = (hub, a, time)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            let transport = patientTransport(url)
            let synchronizer = Synchronizer(store: a, transport: transport, environment: time)
            try synchronizer.subscribe(["notes"])
            for number in 1...3 {
                try await eventually("waiting") { hub.sleeperCount == 1 }
                try hub.dataset("notes").put("\(number)", for: "key")
                try await eventually("told of \(number)") {
                    try a.existingDataset("notes")?.text("key") == "\(number)"
                }
            }
            // The last exchange has ended when the next question is asked.
            try await eventually("waiting") { hub.sleeperCount == 1 }
            #expect(synchronizer.lastError == nil)
            await synchronizer.shutdown()
            await transport.shutdown()
        }
        #expect(hub.sleeperCount == 0)
        // Nobody began to sleep but the hub, for the longest wait.
        #expect(time.slept.allSatisfy { $0 == .milliseconds(SyncLimits.watchMillisecondsMax) })
    }

    @Test func theAnswerSaysWhatIsAhead() async throws {
        let (hub, a) = (hub, a)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            let transport = patientTransport(url)
            let waiting = Task { try await Self.watch(transport, from: a, at: hub) }
            try await eventually("waiting") { hub.sleeperCount == 1 }
            try hub.dataset("notes").put("1", for: "key")
            let answer = try await waiting.value
            #expect(answer.hasWaited)
            #expect(try answer.news.map(\.since) == [hub.dataset("notes").syncCount])
            await transport.shutdown()
        }
    }

    /// An answer without news, and nothing of the wait stays at the hub.
    @Test func theTimeEndsTheWait() async throws {
        let (hub, a, time) = (hub, a, time)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            let transport = patientTransport(url)
            let waiting = Task { try await Self.watch(transport, from: a, at: hub) }
            try await eventually("waiting") { time.sleeperCount == 1 }
            time.advance(by: .milliseconds(SyncLimits.watchMillisecondsMax - 1))
            #expect(time.sleeperCount == 1)
            time.advance(by: .milliseconds(1))
            let answer = try await waiting.value
            #expect(answer.hasWaited && answer.news.isEmpty)
            #expect(hub.sleeperCount == 0)
            await transport.shutdown()
        }
    }

    /// Nothing of a wait stays at the hub when the caller has gone: neither the sleeper nor what it
    /// asked for. The next question over the same transport is answered as ever.
    @Test func aCancelledWaitFreesTheHub() async throws {
        let (hub, a) = (hub, a)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            let transport = patientTransport(url)
            for _ in 0..<5 {
                let waiting = Task { try await Self.watch(transport, from: a, at: hub) }
                try await eventually("waiting") { hub.sleeperCount == 1 }
                waiting.cancel()
                let error = await #expect(throws: SyncError.self) { try await waiting.value }
                #expect(error?.code == .cancelled)
                try await eventually("forgotten") { hub.sleeperCount == 0 }
            }
            try await a.synchronize(with: transport)
            #expect(try a.dataset("notes").text("key") == "0")
            await transport.shutdown()
        }
    }

    /// The hub of these tests has two threads; many more may wait, and it answers others all the
    /// while.
    @Test func whoeverWaitsTakesNoThread() async throws {
        let (hub, a) = (hub, a)
        let count = 12
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            // As many transports, since one keeps no more than a few connections for waits.
            let transports = (0..<count).map { _ in patientTransport(url) }
            let waiting = transports.map { transport in
                Task { try await Self.watch(transport, from: a, at: hub) }
            }
            try await eventually("waiting") { hub.sleeperCount == count }
            try await synchronize(a, url)
            #expect(try a.dataset("notes").text("key") == "0")
            // One that was woken for nothing sleeps again.
            try await eventually("waiting on") { hub.sleeperCount == count }
            try hub.dataset("notes").put("1", for: "key")
            for task in waiting { #expect(try await task.value.news.count == 1) }
            for transport in transports { await transport.shutdown() }
        }
    }

    /// A hub that is to stop does not wait for those who wait: their time would never end.
    @Test func shutdownEndsTheWait() async throws {
        let (hub, a) = (hub, a)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, services in
            let transport = patientTransport(url)
            let waiting = Task { try await Self.watch(transport, from: a, at: hub) }
            try await eventually("waiting") { hub.sleeperCount == 1 }
            await services.triggerGracefulShutdown()
            do {
                #expect(try await waiting.value.news.isEmpty)
            } catch let error as SyncError {
                #expect(error.code == .unreachable)
            }
            await transport.shutdown()
        }
        #expect(hub.sleeperCount == 0)
    }

    @Test func aWrongTokenWaitsForNothing() async throws {
        let (hub, a) = (hub, a)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            let transport = patientTransport(url, token: "wrong")
            let error = await #expect(throws: SyncError.self) {
                try await Self.watch(transport, from: a, at: hub)
            }
            #expect(error?.code == .unauthorized)
            await transport.shutdown()
        }
        #expect(hub.sleeperCount == 0)
    }

    /// Any other message over the path of watches is answered at once, as over the other path.
    @Test func aMessageThatIsNoWatchIsAnsweredAtOnce() async throws {
        let (hub, a) = (hub, a)
        try hub.dataset("notes").put("0", for: "key")
        try await withHub(hub, time: time) { url, _ in
            let transport = patientTransport(url)
            let hello = try SyncMessage.hello(
                HelloRequest(
                    versions: SyncLimits.protocolVersions, from: a.replicaID, names: nil,
                    after: nil)
            ).encoded()
            for request in [hello, [], Array("TMSY".utf8)] {
                let late = try MessageFrame.decoded(try await transport.watch(request))
                let prompt = try MessageFrame.decoded(try await transport.send(request))
                #expect(late.kind == prompt.kind)
            }
            await transport.shutdown()
        }
    }
}
