import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// The API against a dictionary with the rules of the reference: devices, replicas, deletions, lost
/// answers and pages, in any order.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct RecordModelTests {
    /// A dataset as the rules have it.
    private struct Model {
        struct Known {
            var value: String?
            var count: UInt64
            /// By which call; nil if by a replica.
            var call: Int?
        }

        var records: [String: Known] = [:]
        var count: UInt64 = 0
        var exists = false
        /// The count of the last deletion.
        var deleted: UInt64 = 0
        /// How often anything was written: what a session token is bound to.
        var writes = 0

        func contents(since: UInt64) -> [String: String] {
            let isAll = isDeleted(since: since)
            let newer = records.filter { isAll || $0.value.count > since }
            return newer.mapValues { "\($0.value ?? "-")@\($0.count)" }
        }

        func isDeleted(since: UInt64) -> Bool { since > 0 && since < deleted }

        /// nil if the patches are refused, else whether anything is written.
        ///
        /// - Parameter call: that went through already with these patches and this session.
        func outcome(_ patches: [Patch], writesAtListing: Int, repeating call: Int?) -> Bool? {
            guard writesAtListing == writes else {
                guard let call else { return nil }
                return patches.allSatisfy { records[$0.key]?.call == call } ? false : nil
            }
            return patches.allSatisfy { records[$0.key]?.count ?? 0 == $0.count } ? true : nil
        }

        /// - Returns: a number for the call.
        mutating func apply(_ patches: [Patch]) -> Int {
            (count, writes, exists) = (count + 1, writes + 1, true)
            for patch in patches {
                records[patch.key] = Known(value: patch.value, count: count, call: writes)
            }
            return writes
        }

        mutating func delete() {
            (count, writes, exists) = (count + 1, writes + 1, false)
            deleted = count
            records = [:]
        }

        var live: [(key: String, value: String)] {
            records.compactMap { key, record in record.value.map { (key: key, value: $0) } }
        }
    }

    private struct Session {
        let token: String
        let writes: Int
    }

    private struct Run {
        let device: CognitoDevice
        var generator: SeededGenerator
        var model = Model()
        var sessions: [Session] = []
        /// The last update that went through, to be sent again.
        var lost: (patches: [Patch], session: Session, call: Int)?

        mutating func step() async throws {
            switch generator.below(12) {
            case 0: try await delete()
            case 1, 2: try native()
            case 3: try await repeatLost()
            case 4, 5, 6: try await list()
            default: try await update()
            }
        }

        private mutating func key() -> String { "k\(generator.below(6))" }

        private mutating func list() async throws {
            let since = UInt64(generator.below(Int(model.count) + 1))
            let size = 1 + generator.below(4)
            let pages = try await device.listAll(since: since, max: size)
            let told = pages.flatMap(\.records)
            let contents = Dictionary(
                uniqueKeysWithValues: told.map { ($0.key, "\($0.value ?? "-")@\($0.syncCount)") })
            #expect(contents == model.contents(since: since), "since \(since)")
            for page in pages { try check(page, since: since) }
            sessions.append(
                Session(token: try #require(pages.last).syncSessionToken, writes: model.writes))
        }

        private func check(_ page: Listing, since: UInt64) throws {
            #expect(page.datasetExists == model.exists)
            #expect(page.datasetSyncCount == model.count)
            #expect(page.datasetDeletedAfterRequestedSyncCount == model.isDeleted(since: since))
        }

        private mutating func session() async throws -> Session {
            if !sessions.isEmpty, generator.oneIn(5) { return generator.element(of: sessions) }
            let listing = try await device.list()
            try check(listing, since: 0)
            #expect(listing.contents == model.contents(since: 0))
            return Session(token: listing.syncSessionToken, writes: model.writes)
        }

        private mutating func update() async throws {
            let session = try await session()
            var patches: [String: Patch] = [:]
            for _ in 0..<(1 + generator.below(4)) {
                let key = key()
                var count = model.records[key]?.count ?? 0
                if generator.oneIn(12) { count += UInt64(generator.below(2)) }
                let value = generator.oneIn(4) ? nil : "v\(generator.below(3))"
                patches[key] = Patch(key: key, value: value, count: count)
            }
            try await send(patches.values.sorted { $0.key < $1.key }, session)
        }

        private mutating func repeatLost() async throws {
            guard let lost else { return }
            // What others send with a token of the same moment is no repeat, whatever it is.
            if let twin = sessions.last(where: { $0.writes == lost.session.writes }),
                twin.token != lost.session.token
            {
                try await send(lost.patches, twin)
            }
            try await send(lost.patches, lost.session, repeating: lost.call)
        }

        private mutating func send(
            _ patches: [Patch], _ session: Session, repeating call: Int? = nil
        ) async throws {
            let expected = model.outcome(
                patches, writesAtListing: session.writes, repeating: call)
            var answer: [WireRecord] = []
            let refused = try await refusal {
                answer = try await device.update(patches, session: session.token)
            }
            guard let isWritten = expected else {
                #expect(refused?.kind == .resourceConflict)
                return
            }
            #expect(refused == nil)
            if isWritten {
                lost = (patches, session, model.apply(patches))
            }
            #expect(answer.map(\.key) == patches.map(\.key), "every patch is answered")
            for record in answer {
                let known = try #require(model.records[record.key])
                #expect(record.value == known.value && record.syncCount == known.count)
            }
        }

        private mutating func delete() async throws {
            let refused = try await refusal { try await device.delete() }
            #expect(refused?.kind == (model.exists ? nil : .resourceNotFound))
            if model.exists { model.delete() }
        }

        /// As a replica does, record by record, and without the API.
        private mutating func native() throws {
            guard model.exists else { return }
            let dataset = try device.fixture.dataset()
            let key = key()
            let value = generator.oneIn(3) ? nil : "n\(generator.below(3))"
            if let value {
                try dataset.put(value, for: key)
            } else {
                try dataset.delete(key)
            }
            (model.count, model.writes) = (model.count + 1, model.writes + 1)
            model.records[key] = Model.Known(value: value, count: model.count, call: nil)
        }

        func checkSizes() async throws {
            guard model.exists else { return }
            let body = try await device.describe()
            let live = model.live
            #expect(body.numRecords == live.count)
            let bytes = live.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
            #expect(body.dataStorage == bytes)
        }
    }

    @Test("whatever is done, in whatever order, is as the rules have it", arguments: 0..<4)
    func rules(index: Int) async throws {
        let seed = Seed.drawn(for: "rules(\(index))")
        try await withCognito { fixture in
            var run = Run(
                device: CognitoDevice(fixture: fixture), generator: SeededGenerator(seed))
            for step in 0..<250 {
                try await run.step()
                if step % 10 == 0 { try await run.checkSizes() }
                if step % 60 == 59 { try fixture.store.compact() }
            }
            try await run.checkSizes()
        }
    }

    /// Two clients that keep copies as the archived SDKs do: apply what they pull, push with the
    /// counts that they know, and pull again when they are refused.
    @Test("devices that pull and push by the rules end with the same contents")
    func convergence() async throws {
        var generator = SeededGenerator(Seed.drawn())
        try await withCognito { fixture in
            var copies = (0..<3).map { number in
                Copy(device: CognitoDevice(fixture: fixture, deviceID: "d\(number)"))
            }
            for _ in 0..<60 {
                let index = generator.below(copies.count)
                copies[index].edit(&generator)
                if generator.oneIn(2) { try await copies[index].sync() }
                if generator.oneIn(8) {
                    try fixture.dataset().put("native", for: "k\(generator.below(5))")
                }
            }
            for _ in 0..<2 {
                for index in copies.indices { try await copies[index].sync() }
            }
            for copy in copies {
                #expect(copy.records == copies[0].records)
                #expect(copy.dirty.isEmpty)
            }
            let listing = try await copies[0].device.list()
            let there = listing.records.filter { $0.value != nil }.map { ($0.key, $0.value ?? "") }
            #expect(copies[0].live == Dictionary(uniqueKeysWithValues: there))
        }
    }

    private struct Copy {
        struct Entry: Equatable {
            var value: String?
            var count: UInt64
        }

        let device: CognitoDevice
        var records: [String: Entry] = [:]
        var dirty: Set<String> = []
        var count: UInt64 = 0

        init(device: CognitoDevice) {
            self.device = device
        }

        var live: [String: String] { records.compactMapValues(\.value) }

        mutating func edit(_ generator: inout SeededGenerator) {
            let key = "k\(generator.below(5))"
            let value = generator.oneIn(4) ? nil : "\(device.deviceID ?? "")-\(generator.next())"
            guard records[key] != nil || value != nil else { return }
            records[key, default: Entry(value: nil, count: 0)].value = value
            dirty.insert(key)
        }

        /// The remote record wins where both have changed.
        mutating func sync() async throws {
            for _ in 0..<10 {
                let pages = try await device.listAll(since: count, max: 3)
                for record in pages.flatMap(\.records) {
                    records[record.key] = Entry(value: record.value, count: record.syncCount)
                    dirty.remove(record.key)
                }
                let last = try #require(pages.last)
                count = last.datasetSyncCount
                guard !dirty.isEmpty else { return }
                let patches = dirty.sorted().map { key in
                    Patch(
                        key: key, value: records[key]?.value, count: records[key]?.count ?? 0)
                }
                var answer: [WireRecord] = []
                let refused = try await refusal {
                    answer = try await device.update(patches, session: last.syncSessionToken)
                }
                guard refused == nil else { continue }
                for record in answer {
                    records[record.key] = Entry(value: record.value, count: record.syncCount)
                }
                dirty = []
                count = max(count, answer.map(\.syncCount).max() ?? 0)
                return
            }
            Issue.record("refused again and again")
        }
    }
}
