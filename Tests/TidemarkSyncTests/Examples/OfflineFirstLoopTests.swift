import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkSync

/// The example of the article *SynchronizingApps* is the code of `OfflineFirstLoop.swift`, to the
/// letter, and it works.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct OfflineFirstLoopTests {
    @Test func theArticleQuotesTheExample() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let example = try String(
            contentsOf: folder.appendingPathComponent("OfflineFirstLoop.swift"), encoding: .utf8)
        let article = "../../../Sources/TidemarkSync/TidemarkSync.docc/SynchronizingApps.md"
        let text = try String(
            contentsOf: folder.resolvingSymlinksInPath().appendingPathComponent(article),
            encoding: .utf8)
        #expect(text.contains("```swift\n" + example + "```"))
    }

    @Test func twoNotebooksMeetAtAHub() async throws {
        let directory = TemporaryDirectory()
        let replicas = try ["phone", "desk", "hub"].map { try TestReplica($0, in: directory) }
        let hub = replicas[2]
        let phoneNetwork = ConnectivitySwitch(.offline)
        let phone = try Notebook(
            store: replicas[0].store, hub: hub.transport, network: phoneNetwork)
        let desk = try Notebook(
            store: replicas[1].store, hub: hub.transport, network: ConnectivitySwitch(.free))
        try await phone.write("milk", as: "shopping")
        try await phone.write("offline", as: "plan")
        try await desk.write("bread", as: "shopping")
        let loops = [Task { try await phone.run() }, Task { try await desk.run() }]
        // The desk's note reaches the hub while the phone is offline.
        for try await record in try hub.dataset().liveChanges(since: .zero) {
            if record.keyText == "shopping" { break }
        }
        #expect(try await phone.unsentCount() == 2)
        phoneNetwork.set(.expensive)
        #expect(try await phone.unsentCount() == 2)
        phoneNetwork.set(.free)
        // The phone merges, and the hub announces the outcome to the desk.
        for try await record in try replicas[1].dataset().liveChanges(since: .zero) {
            if record.keyText == "shopping", record.valueText == "bread\nmilk" { break }
        }
        for try await record in try replicas[1].dataset().liveChanges(since: .zero) {
            if record.keyText == "plan" { break }
        }
        while try await phone.unsentCount() > 0 { await Task.yield() }
        await phone.close()
        await desk.close()
        for loop in loops { try await loop.value }
        #expect(try await phone.text(of: "shopping") == "bread\nmilk")
        #expect(await desk.changedElsewhere == ["plan", "shopping"])
        #expect(await desk.problem == nil)
    }
}
