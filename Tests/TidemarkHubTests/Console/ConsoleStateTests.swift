import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What the console keeps in memory, all of it bounded; its files; and what it tells of settings.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ConsoleStateTests {
    @Test(
        "sessions end when they are not used, in any case after a while, and the oldest gives way")
    func sessions() {
        let time = VirtualEnvironment()
        let sessions = ConsoleSessions(clock: time)
        let (cookie, session) = sessions.open()
        #expect(sessions.session(of: cookie)?.digest == session.digest)
        #expect(sessions.session(of: cookie + "x") == nil && sessions.session(of: "") == nil)
        time.advance(by: .milliseconds(ConsoleLimits.sessionIdleMilliseconds - 1))
        #expect(sessions.session(of: cookie) != nil)
        // Looking on does not use it.
        time.advance(by: .milliseconds(ConsoleLimits.sessionIdleMilliseconds - 1))
        #expect(sessions.isOpen(session))
        time.advance(by: .milliseconds(1))
        #expect(!sessions.isOpen(session) && sessions.session(of: cookie) == nil)
        let (busy, _) = sessions.open()
        let step = ConsoleLimits.sessionIdleMilliseconds / 2
        for _ in 0..<ConsoleLimits.sessionMilliseconds / step {
            time.advance(by: .milliseconds(step))
            _ = sessions.session(of: busy)
        }
        #expect(sessions.session(of: busy) == nil)
        var cookies: [String] = []
        for _ in 0...ConsoleLimits.sessionsMax {
            time.advance(by: .milliseconds(1))
            cookies.append(sessions.open().cookie)
        }
        #expect(sessions.count == ConsoleLimits.sessionsMax)
        #expect(sessions.session(of: cookies[0]) == nil)
        #expect(cookies.dropFirst().allSatisfy { sessions.session(of: $0) != nil })
        #expect(Set(cookies).count == cookies.count)
    }

    @Test("a listener that does not read holds so many events, and is told how many it has lost")
    func slowListener() {
        let sessions = ConsoleSessions(clock: VirtualEnvironment())
        let listener = ConsoleListener(session: sessions.open().session)
        for number in 0..<ConsoleLimits.waitingEventsMax + 10 {
            listener.tell([ConsoleFeed.event("operation", "{\"number\":\(number)}")])
        }
        let told = listener.take().text
        #expect(told.hasPrefix("event: lost\ndata: {\"operations\":10}\n\n"))
        #expect(!told.contains("\"number\":9}") && told.contains("\"number\":10}"))
        #expect(
            told.components(separatedBy: "event: operation").count - 1
                == ConsoleLimits.waitingEventsMax)
        #expect(listener.take().text.isEmpty)
        listener.beat()
        #expect(listener.take().text == ": \n\n")
        listener.close()
        #expect(listener.take().isClosed)
    }

    @Test(
        "a reader of changes tells what is new once, of many the newest, and nothing of the hub's")
    func reader() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("hub")
        let dataset = try store.dataset("shared")
        try dataset.put("1", for: "a")
        var reader = ConsoleFeedReader(start: .max)
        // Met for the first time: only what was last is news.
        try dataset.put("2", for: "b")
        let first = try reader.events(of: ["shared", "hub:pools"], in: store)
        #expect(first.count == 1 && first[0].contains(#""text":"b""#))
        #expect(try reader.events(of: ["shared"], in: store).isEmpty)
        try dataset.put("3", for: "c")
        try dataset.delete("a")
        let second = try reader.events(of: ["shared"], in: store)
        #expect(second.count == 2 && second[0].contains(#""text":"c""#))
        #expect(second[1].contains(#""isDeleted":true"#))
        let many = ConsoleLimits.operationsAtOnce + 5
        for number in 0..<many { try dataset.put("v", for: "many-\(number)") }
        let third = try reader.events(of: ["shared"], in: store)
        #expect(third.count == ConsoleLimits.operationsAtOnce + 1)
        #expect(third[0].contains("event: skipped") && third[0].contains("\"operations\":5"))
        try store.deleteDataset("shared")
        let last = try reader.events(of: ["shared"], in: store)
        #expect(last.count == 1 && last[0].contains("event: deleted"))
        try store.close()
    }

    @Test("samples are so many and no more, the oldest go, and rates are by the second")
    func samples() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("hub")
        let dataset = try store.dataset("shared")
        let samples = ConsoleSamples()
        let durations = HistogramCell(bounds: HistogramCell.seconds)
        samples.take(store.counters(), durations.current, at: 1_000)
        for number in 0..<10 { try dataset.put("v", for: "\(number)") }
        try dataset.delete("1")
        for _ in 0..<99 { durations.record(0.002) }
        durations.record(0.4)
        samples.take(store.counters(), durations.current, at: 3_000)
        let second = try #require(samples.all.last)
        #expect(second.puts == 5 && second.deletes == 0.5 && second.requests == 50)
        #expect(second.medianMilliseconds == 2.5 && second.slowMilliseconds == 2.5)
        #expect(second.loggedBytes > 0)
        for number in 0..<ConsoleLimits.samplesMax + 7 {
            samples.take(store.counters(), durations.current, at: 4_000 + UInt64(number))
        }
        let all = samples.all.map(\.time)
        #expect(all.count == ConsoleLimits.samplesMax && all == all.sorted())
        #expect(all.last == 4_000 + UInt64(ConsoleLimits.samplesMax) + 6)
        let told = try JSONValue(parsing: samples.answer(since: all[all.count - 3]))
        #expect(told["samples"]?.elements?.count == 2)
        #expect(told["samples"]?.elements?.first?["puts"]?.description == "0.0")
        try store.close()
    }

    @Test("counters that have gone back since the last sample have grown by nothing")
    func countersThatGoBack() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("hub")
        let samples = ConsoleSamples()
        let durations = HistogramCell(bounds: HistogramCell.seconds)
        let former = store.counters()
        try store.dataset("shared").put("v", for: "key")
        samples.take(store.counters(), durations.current, at: 1_000)
        samples.take(former, durations.current, at: 2_000)
        let last = try #require(samples.all.last)
        #expect(last.loggedBytes == 0 && last.puts == 0)
        try store.close()
    }

    @Test("settings are told without any secret, and addresses without what may be one")
    func settings() throws {
        var settings = HubSettings()
        settings.adminToken = HubSecret("token-secret")
        settings.secrets = HubSecret("master-secret")
        settings.accessKeys = [HubSettings.AccessKey(id: "AKIA1", secret: HubSecret("key-secret"))]
        settings.issuers = [
            IssuerSettings(
                provider: "login", issuer: "https://login", audiences: ["app"],
                algorithms: [.hs256], keys: .shared(HubSecret("issuer-secret")))
        ]
        var pool = PoolSettings(id: "us-east-1:1", name: "notes")
        let endpoint = PoolSettings.Endpoint(
            url: "https://user:url-secret@hooks.example.com:8443/a/b?key=query-secret#c-secret",
            secret: HubSecret("hook-secret"))
        pool.trigger = endpoint
        pool.resolver = endpoint
        pool.stream = .endpoint(endpoint)
        pool.push = .endpoint(endpoint)
        settings.pools = [pool]
        let answer = try JSONValue(parsing: ConsoleSettings(settings).answer)
        for secret in ["token", "master", "key", "issuer", "url", "query", "c", "hook"] {
            #expect(!answer.description.contains("\(secret)-secret"), "\(secret)")
        }
        #expect(answer.description.contains("https://hooks.example.com:8443/a/b"))
        #expect(answer.description.contains("AKIA1"))
        #expect(answer.description.contains("recordsPerDatasetMax"))
        #expect(answer.description.contains("connectionsPerAddressMax"))
        for url in ["", "x", "http://", "http://@", "://"] {
            #expect(!ConsoleSettings.address(url).contains("@"))
        }
    }

    @Test("the files in the program are those of the folder Static, to the byte")
    func files() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/TidemarkHub/Console/Static")
            .standardizedFileURL
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(ConsoleFiles.all.map(\.name).sorted() == names, "run tools/embed-console")
        for name in names {
            let bytes = try Data(contentsOf: folder.appendingPathComponent(name))
            let file = try #require(ConsoleFile.named(name), "\(name)")
            #expect(file.bytes == Array(bytes), "\(name): run tools/embed-console")
        }
    }

    @Test("the page has no script or style within, and asks nobody else for anything")
    func page() throws {
        let index = try #require(ConsoleFile.named("index.html"))
        let html = String(decoding: index.bytes, as: UTF8.self)
        #expect(!html.contains("style=") && !html.contains("<style") && !html.contains("onclick"))
        #expect(html.components(separatedBy: "<script").count == 2)
        for file in ConsoleFiles.all {
            let text = String(decoding: file.bytes, as: UTF8.self)
            #expect(!text.contains("https://"), "\(file.name)")
            let isMarkup = [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
            ]
            .contains { text.contains($0) }
            #expect(!isMarkup, "\(file.name)")
        }
    }
}
