import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// The property: a bundle of which any byte is not what it was, that is cut anywhere, or whose
/// frames are not all there in their order changes nothing, and the error says where it is damaged.
struct BundleDamageTests {
    let directory = TemporaryDirectory()
    let a: TestReplica
    let b: TestReplica
    let file: String
    let whole: [UInt8]

    init() throws {
        a = try TestReplica("a", in: directory)
        b = try TestReplica("b", in: directory)
        file = "\(directory.path)/notes.bundle"
        for number in 0..<23 { try a.dataset().put("ours \(number)", for: "key \(number)") }
        try a.dataset().put(String(repeating: "long ", count: 500), for: "long")
        for number in 0..<4 { try b.dataset().put("theirs \(number)", for: "other \(number)") }
        try a.store.exportBundle(
            of: "notes", to: file, limits: SyncResponder.Limits(pageRecordsMax: 5))
        whole = try Files.read(file)
    }

    /// Where each frame begins, by the lengths in their heads, and where the last one ends.
    private var starts: [Int] {
        var starts = [0]
        while let start = starts.last, start < whole.count {
            let length = whole[start + 8..<start + 12].reversed().reduce(0) { $0 << 8 | Int($1) }
            starts.append(start + 12 + length + 8)
        }
        return starts
    }

    private func expectDamage(
        _ bytes: [UInt8], before end: Int, _ comment: Comment,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let before = try Contents(b.dataset())
        let count = try b.dataset().syncCount
        try Files.write(bytes, to: file)
        let error = await #expect(
            throws: SyncError.self, comment, sourceLocation: sourceLocation
        ) {
            try await b.store.importBundle(from: file)
        }
        #expect(error?.code == .damagedBundle, comment, sourceLocation: sourceLocation)
        let location = error?.storeError?.location
        #expect(location?.path == file, comment, sourceLocation: sourceLocation)
        #expect(
            location?.offset ?? .max <= UInt64(end), comment, sourceLocation: sourceLocation)
        #expect(try Contents(b.dataset()) == before, comment, sourceLocation: sourceLocation)
        #expect(try b.dataset().syncCount == count, comment, sourceLocation: sourceLocation)
    }

    @Test func framesAreWhereTheyMustBe() {
        // A header, five pages of 24 records, an end.
        #expect(starts.count == 8)
        #expect(starts.last == whole.count)
    }

    @Test func anyDamageIsFoundAndChangesNothing() async throws {
        let seed = Seed.drawn()
        var random = SeededGenerator(seed: seed.rawValue)
        for round in 0..<400 {
            var bytes = whole
            let place = Int.random(in: 0..<whole.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: bytes.removeSubrange(place...)
            case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
            default: bytes.remove(at: place)
            }
            // A byte taken out of a run of equal ones, or put into one, shows at its end.
            guard bytes != whole else { continue }
            try await expectDamage(
                bytes, before: whole.count, "seed \(seed), round \(round), at \(place)")
        }
        try Files.write(whole, to: file)
        #expect(try await b.store.importBundle(from: file).pulled == 24)
    }

    /// Each frame is whole by itself.
    @Test func framesInAnotherOrderOrNumber() async throws {
        let starts = starts
        let frames = (0..<starts.count - 1).map { Array(whole[starts[$0]..<starts[$0 + 1]]) }
        for index in frames.indices {
            let without = frames[..<index] + frames[(index + 1)...]
            try await expectDamage(
                Array(without.joined()), before: whole.count, "without frame \(index)")
            let twice = frames[...index] + frames[index...]
            try await expectDamage(
                Array(twice.joined()), before: whole.count, "frame \(index) twice")
            for other in frames.indices where other != index {
                var swapped = frames
                swapped.swapAt(index, other)
                try await expectDamage(
                    Array(swapped.joined()), before: whole.count, "\(index) for \(other)")
            }
        }
    }

    @Test func everyCutIsNamedWithItsFrame() async throws {
        for (start, end) in zip(starts, starts.dropFirst()) {
            for cut in [start, start + 1, start + 12, end - 1] {
                try await expectDamage(Array(whole[..<cut]), before: start, "cut at \(cut)")
            }
        }
    }

    /// The file changes between the time at which it was checked and the time at which a page is
    /// applied: the pages before are here, and importing the whole file goes on behind them.
    @Test func aFileThatIsChangedMeanwhile() async throws {
        let start = starts[3]
        let (path, damage) = (file, whole[start + 20] ^ 1)
        let options = SyncOptions(progress: { progress in
            guard progress.recordsReceived == 5 else { return }
            #expect(throws: Never.self) {
                try Files.overwrite([damage], in: path, at: start + 20)
            }
        })
        let error = await #expect(throws: SyncError.self) {
            try await b.store.importBundle(from: file, options: options)
        }
        #expect(error?.code == .damagedBundle)
        #expect(error?.storeError?.location?.offset == UInt64(start))
        // Two pages: what is here is a beginning, and its position is noted with it.
        #expect(try b.dataset().count() == 4 + 10)
        try Files.write(whole, to: file)
        let result = try await b.store.importBundle(from: file)
        #expect(result.pulled == 14 && result.pagesReceived == 3)
        #expect(try b.dataset().count() == 4 + 24)
    }

    /// What is checked by the frames is right, and what they say is not possible.
    @Test func forgedHeadersAreRefused() async throws {
        let id = a.store.replicaID
        let pages = Array(whole[starts[1]...])
        func header(_ change: (inout BundleHeader) -> Void) throws -> [UInt8] {
            var header = BundleHeader(
                sender: id, dataset: "notes", receiver: nil, since: 0, acknowledged: 0,
                required: VersionVector(), drawn: [])
            change(&header)
            return try header.encoded()
        }
        // The end knows the checksum of the header that was there.
        let other = try header { $0.since = 1 }
        try await expectDamage(other + pages, before: whole.count, "another header")
        let ahead = try header { $0.since = 100 }
        try await expectDamage(ahead + pages, before: starts[1] + 1_000, "begins after its end")
        let newer = try MessageFrame(
            version: 1, kind: BundleHeader.kind, body: [2, 0]
        ).encoded()
        try Files.write(newer + pages, to: file)
        let error = #expect(throws: SyncError.self) { try BundleSummary(ofFileAt: file) }
        #expect(error?.code == .protocolMismatch)
        // No answer of a peer is a bundle, and no bundle an answer.
        try await expectDamage(pages, before: 0, "an answer")
        #expect(throws: SyncError.self) {
            try SyncMessage(MessageFrame.decoded(Array(whole[..<starts[1]])))
        }
    }
}
