import TestSupport
import Testing
import Tidemark

@testable import Torture

/// Children never outlive the driver.
@Suite struct LeashTests {
    @Test func aChildEndsWithItsStandardInput() throws {
        let directory = try TemporaryDirectory()
        let order = ChildOrder(
            role: .hub, directory: directory["hub"], seed: Seed(1), replica: 3, life: 0,
            number: 0, writeCount: 0, url: "", plantedBugs: [])
        let child = try ChildProcess("Torture", order.arguments)
        var told: [UInt8] = []
        let begin = ContinuousClock.now
        while !String(decoding: told, as: UTF8.self).contains("listening") {
            try #require(ContinuousClock.now - begin < Patience.limit)
            told += try #require(try child.read(waitingMilliseconds: 100))
        }
        let lines = String(decoding: told, as: UTF8.self).split(separator: "\n")
        #expect(lines.compactMap { Telling($0) }.count == 2)
        child.closeInput()
        #expect(try child.readToEnd().isEmpty)
        #expect(!child.wait())
    }
}
