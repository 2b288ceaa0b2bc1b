import Foundation
import Testing
import Tidemark

@testable import TidemarkSync

/// Stores that were restored or repaired, and their peers.
struct OperationsTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private func fill(_ dataset: Dataset, _ range: Range<Int>, _ text: String) throws {
        for number in range { try dataset.put("\(text) \(number)", for: "key \(number)") }
    }

    private func open(_ path: String) throws -> Store {
        try Store.open(
            at: path, options: StoreOptions(durability: .memory, segmentBytes: 1 << 20))
    }

    @Test func aRestoredStoreAndItsOriginalBecomeEqual() async throws {
        try fill(a.dataset(), 0..<30, "ours")
        try await a.dataset().synchronize(with: b.transport)
        try a.store.backup(to: "\(a.directory.path)/backup")
        try fill(a.dataset(), 20..<40, "later")
        try Store.restore(from: "\(a.directory.path)/backup", to: "\(a.directory.path)/restored")
        let restored = try open("\(a.directory.path)/restored")
        try fill(restored.dataset("notes"), 25..<50, "restored")
        for _ in 0..<2 {
            try await restored.dataset("notes").synchronize(with: b.transport)
            try await a.dataset().synchronize(with: b.transport)
        }
        let digest = try a.dataset().digest()
        #expect(try b.dataset().digest() == digest)
        #expect(try restored.dataset("notes").digest() == digest)
        #expect(try a.dataset().count() == 50)
        try restored.close()
    }

    /// The backup is from before the first exchange: that somebody has the record by now is known
    /// from nothing but the id under which it was written.
    @Test func aDeletionAfterARestoreReachesWhoHasTheRecord() async throws {
        try a.dataset().put("value", for: "key")
        try a.store.backup(to: "\(a.directory.path)/backup")
        try await a.dataset().synchronize(with: b.transport)
        try Store.restore(from: "\(a.directory.path)/backup", to: "\(a.directory.path)/restored")
        let restored = try open("\(a.directory.path)/restored")
        try restored.dataset("notes").delete("key")
        try restored.compact()
        try await restored.dataset("notes").synchronize(with: b.transport)
        #expect(try b.dataset().text("key") == nil)
        #expect(try restored.dataset("notes").digest() == b.dataset().digest())
        try restored.close()
    }

    /// What is lost of a store comes back from its peer; what the peer lacks goes to it.
    @Test(arguments: [true, false]) func aRepairedStoreGetsBackWhatThePeerHas(
        losesLog: Bool
    ) async throws {
        try fill(a.dataset(), 0..<400, "ours \(String(repeating: "x", count: 40))")
        try a.store.compact()
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().delete("key 7")
        try fill(b.dataset(), 390..<420, "theirs")
        try await a.dataset().synchronize(with: b.transport)
        let before = try Contents(b.dataset())
        try a.dataset().put("not seen by anyone", for: "new")
        try a.store.close()
        let path = "\(a.directory.path)/a"
        for name in try FileManager.default.contentsOfDirectory(atPath: path) {
            guard name.hasSuffix(losesLog ? ".log" : ".seg") else { continue }
            // A block in the middle of the file is damaged.
            let file = try #require(FileHandle(forUpdatingAtPath: "\(path)/\(name)"))
            try file.seek(toOffset: losesLog ? 150 : 2_000)
            try file.write(contentsOf: Data(repeating: 7, count: 40))
            try file.close()
        }
        let report = try Store.repair(at: path, to: "\(a.directory.path)/repaired")
        #expect(!report.isComplete)
        let repaired = try open("\(a.directory.path)/repaired")
        let dataset = try repaired.dataset("notes")
        if !losesLog { #expect(try dataset.count() < 421) }
        for _ in 0..<2 { try await dataset.synchronize(with: b.transport) }
        #expect(try dataset.digest() == b.dataset().digest())
        #expect(try b.dataset().text("new") == "not seen by anyone")
        #expect(try b.dataset().text("key 7") == nil, "a deleted record is back")
        let after = try Contents(b.dataset())
        #expect(after.lines.filter { $0.key != Array("new".utf8) } == before.lines)
        try repaired.close()
    }
}
