import TestSupport
import Testing
import Tidemark

/// A page of a sealed segment that the disk cannot read is an error for whoever needs it. Nothing
/// is read past the error (the simulated disk has garbage there, which would be `corruption`), no
/// value is a wrong one, and the store goes on writing, whatever its merges meet.
@Suite("Bad sectors under segments")
struct BadSectorTests {
    private static let recordCount = 300
    private static let pageBytes = 4_096

    private func options(merges: Bool = false) -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = merges
        options.compression = .none
        return options
    }

    private func value(_ number: Int) -> String {
        "\(number) " + String(repeating: "v", count: number % 200)
    }

    /// A closed store of one segment.
    private func made() throws -> (storage: SimulatedStorage, path: String, size: Int) {
        let storage = SimulatedStorage(seed: Seed(3))
        let store = try openSimulated(storage, options())
        let dataset = try store.dataset("main")
        for number in 0..<Self.recordCount {
            try dataset.put(value(number), for: "key \(number)")
        }
        try store.compact()
        try store.close()
        let names = try storage.listDirectory(simulatedPath).filter { $0.hasSuffix(".seg") }
        try #require(names.count == 1)
        let path = "\(simulatedPath)/\(names[0])"
        return (storage, path, try #require(storage.contents(of: path)).count)
    }

    /// What the body returns; nil if the disk cannot read a page of the segment for it.
    private func unlessUnreadable<Result>(
        _ path: String, _ body: () throws -> Result
    ) throws -> Result? {
        do {
            return try body()
        } catch let error as StoreError where error.code == .inputOutput {
            try require(error.location?.path == path, "\(error)")
            return nil
        }
    }

    @Test("Reads say so, and writers go on when a merge comes upon it")
    func eachPage() throws {
        let size = try made().size
        var (unopened, unread, unmerged) = (0, 0, 0)
        for page in 0..<((size + Self.pageBytes - 1) / Self.pageBytes) {
            let (storage, path, _) = try made()
            let start = page * Self.pageBytes
            storage.spoil(start..<min(start + Self.pageBytes, size), of: path)
            let opened = try unlessUnreadable(path) {
                let store = try openSimulated(storage, options())
                return (store, try store.dataset("main"))
            }
            guard let (store, dataset) = opened else {
                unopened += 1
                continue
            }
            for number in 0..<Self.recordCount {
                let key = "key \(number)"
                let found = try unlessUnreadable(path) { try dataset.text(key) }
                if found == nil { unread += 1 }
                try require(found.map { $0 == value(number) } ?? true, "\(key) is another")
            }
            let damages = try store.verify().damages
            #expect(!damages.isEmpty && damages.allSatisfy { $0.code == .inputOutput })
            for round in 0..<3 {
                try dataset.put("\(round)", for: "another")
                let report = try unlessUnreadable(path) {
                    round == 0 ? try dataset.compact() : try store.compact()
                }
                if report == nil { unmerged += 1 }
                // A merge that came to nothing leaves nothing behind.
                let listed = try storage.listDirectory(simulatedPath)
                    .filter { $0.hasSuffix(".seg") }
                #expect(try listed.count == store.usage().segments.count { $0.isSealed })
            }
            try dataset.put("last", for: "another")
            try store.sync()
            #expect(!store.counters().isWriterStopped)
            try store.close()
            let again = try openSimulated(storage, options())
            #expect(try again.dataset("main").text("another") == "last")
            try again.close()
        }
        #expect(unopened > 0 && unread > 0 && unmerged > 0)
    }

    @Test("Merging in the background rests, and writers go on")
    func background() throws {
        let (storage, path, size) = try made()
        // Records, but not those of the store itself, which lie at the beginning.
        storage.spoil(2 * Self.pageBytes..<(size / 2), of: path)
        let observer = RecordingObserver()
        let store = try Store.open(
            at: simulatedPath, options: options(merges: true), storage: storage,
            observer: observer)
        let other = try store.dataset("other")
        // Enough logs of 1 MiB for a merge of their runs, and of the old one with them.
        let value = [UInt8](repeating: 7, count: 1_000)
        for number in 0..<12_000 { try other.put(value, for: bytes("\(number)")) }
        try store.waitForBackgroundWork()
        #expect(!store.counters().isWriterStopped)
        #expect(try other.count() == 12_000)
        try store.sync()
        try store.close()
        let failures = observer.events.compactMap { event in
            if case .mergeFailed(let error) = event { error } else { nil }
        }
        #expect(!failures.isEmpty)
        #expect(failures.allSatisfy { $0.code == .inputOutput && $0.location?.path == path })
    }
}
