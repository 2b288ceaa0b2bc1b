import TestSupport
import Testing
import Tidemark

/// What the sync module builds upon: pages of changes, adopted and resolved versions, checkpoints
/// that are stored with them, and lifecycles.
@Suite("Replication")
struct ReplicationTests {
    private func page(of dataset: Dataset, since: SyncCount = 0) throws -> ChangesPage {
        try dataset.changesPage(
            since: since, recordsMax: 1_000, bytesMax: 1 << 30, excluding: VersionVector())
    }

    /// Everything of one dataset, as it would be adopted by another replica without conflicts.
    private func batch(from source: Dataset, to target: Dataset) throws -> ReplicationBatch {
        let page = try page(of: source)
        var batch = ReplicationBatch()
        for record in page.records {
            let local = try target.record(for: record.key, includingDeleted: true)
            batch.writes.append(
                ReplicatedWrite(
                    key: record.key, content: .adopt(value: record.value, version: record.version),
                    expected: local?.version))
        }
        batch.seen = page.knowledge.vector
        return batch
    }

    @Test("Pages follow each other without gap or overlap, however small")
    func pages() throws {
        let fixture = try StoreFixture()
        for index in 0..<40 { try fixture.dataset.put("\(index)", for: "key \(index % 25)") }
        try fixture.store.compact()
        try fixture.dataset.delete("key 3")
        let all = try fixture.dataset.changes(since: 0).collect()
        for (recordsMax, bytesMax) in [(1, 1_000), (4, 1_000), (1_000, 1), (1_000, 30)] {
            var records: [Record] = []
            var since = SyncCount.zero
            while true {
                let page = try fixture.dataset.changesPage(
                    since: since, recordsMax: recordsMax, bytesMax: bytesMax,
                    excluding: VersionVector())
                #expect(page.records.count <= recordsMax && page.through >= since)
                records += page.records
                if page.isLast { break }
                #expect(!page.records.isEmpty && page.through > since, "no progress")
                since = page.through
            }
            #expect(records == all)
        }
    }

    @Test("What a peer is proven to have is left out, and counts as told")
    func excluding() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for index in 0..<10 { try dataset.put("\(index)", for: "key \(index)") }
        let seen = try dataset.vector
        try dataset.put("new", for: "key 3")
        let page = try dataset.changesPage(
            since: 0, recordsMax: 100, bytesMax: 1 << 20, excluding: seen)
        #expect(page.records.map(\.keyText) == ["key 3"] && page.isLast)
        #expect(try page.through == dataset.syncCount)
        #expect(try page.knowledge.vector == dataset.vector)
        #expect(page.knowledge.syncCount == page.through && !page.knowledge.lifecycle.isDeleted)
    }

    @Test("Adopted records keep their version and get a count of their own")
    func adoption() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        for index in 0..<20 { try one.dataset.put("\(index)", for: "key \(index % 15)") }
        try one.dataset.delete("key 2")
        try two.dataset.put("own", for: "own")
        let before = try two.dataset.syncCount.rawValue
        #expect(try two.dataset.replicate(batch(from: one.dataset, to: two.dataset)).isEmpty)
        let (store, dataset) = try two.reopened()
        let originals = try one.dataset.records(includingDeleted: true).collect()
        for original in originals {
            let copy = try #require(
                try dataset.record(for: original.key, includingDeleted: true))
            #expect(copy.value == original.value && copy.version == original.version)
            #expect(!copy.isDirty && copy.syncCount.rawValue > before)
        }
        #expect(try dataset.syncCount.rawValue == before + UInt64(originals.count))
        #expect(try dataset.record(for: "own")?.isDirty == true)
        #expect(try dataset.vector.covers(one.dataset.vector))
        // What is written on top descends from what was adopted.
        try dataset.put("mine", for: "key 3")
        let mine = try #require(try dataset.record(for: "key 3"))
        let theirs = try #require(try one.dataset.record(for: "key 3"))
        #expect(mine.version.relation(to: theirs.version) == .descendant)
        #expect(mine.version.isLater(than: theirs.version))
        try store.close()
    }

    @Test("Replicas with the same records have the same digest")
    func digest() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        for index in 0..<20 { try one.dataset.put("\(index)", for: "key \(index)") }
        #expect(try one.dataset.digest() != two.dataset.digest())
        _ = try two.dataset.replicate(batch(from: one.dataset, to: two.dataset))
        #expect(try one.dataset.digest() == two.dataset.digest())
        try two.dataset.put("1", for: "key 1")
        #expect(try one.dataset.digest() != two.dataset.digest())
    }

    @Test("If one record has moved on, nothing of the batch is applied")
    func expectations() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        try one.dataset.put("theirs", for: "a")
        try one.dataset.put("theirs", for: "b")
        var batch = try batch(from: one.dataset, to: two.dataset)
        batch.checkpoint = (
            one.store.replicaID, PeerCheckpoint(pulledThrough: 2, pushedThrough: 0)
        )
        try two.dataset.put("moved on", for: "b")
        let digest = try two.dataset.digest()
        #expect(try two.dataset.replicate(batch) == [bytes("b")])
        #expect(try two.dataset.digest() == digest && two.dataset.get("a") == nil)
        #expect(try two.dataset.checkpoint(for: one.store.replicaID) == PeerCheckpoint())
        #expect(try !two.dataset.vector.covers(one.dataset.vector))
    }

    @Test("A resolved conflict descends from both sides and is a local write")
    func resolution() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        try one.dataset.put("theirs", for: "a")
        try two.dataset.put("mine", for: "a")
        let theirs = try #require(try one.dataset.record(for: "a"))
        let mine = try #require(try two.dataset.record(for: "a"))
        #expect(mine.version.relation(to: theirs.version) == .concurrent)
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes("a"), content: .resolve(value: bytes("both"), seen: theirs.version),
                expected: mine.version)
        ]
        batch.seen = try one.dataset.vector
        #expect(try two.dataset.replicate(batch).isEmpty)
        let (store, dataset) = try two.reopened()
        let merged = try #require(try dataset.record(for: "a"))
        #expect(merged.valueText == "both" && merged.isDirty)
        #expect(merged.version.dot.replica == store.replicaID)
        for side in [mine, theirs] {
            #expect(merged.version.relation(to: side.version) == .descendant)
            #expect(merged.version.time > side.version.time)
        }
        try store.close()
    }

    @Test("A checkpoint is stored with the records and survives")
    func checkpoints() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        try one.dataset.put("1", for: "a")
        let peer = one.store.replicaID
        let checkpoint = PeerCheckpoint(
            pulledThrough: 7, pushedThrough: 3, vector: try one.dataset.vector)
        var batch = try batch(from: one.dataset, to: two.dataset)
        batch.checkpoint = (peer, checkpoint)
        #expect(try two.dataset.replicate(batch).isEmpty)
        #expect(try two.dataset.checkpoint(for: peer) == checkpoint)
        try two.store.compact()
        let (store, dataset) = try two.reopened()
        #expect(try dataset.checkpoint(for: peer) == checkpoint)
        #expect(
            try dataset.checkpoint(for: ReplicaID(high: 9, low: 9)) == PeerCheckpoint())
        try store.close()
    }

    @Test("Records are dirty until a peer is known to have them")
    func dirtiness() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        let seen = try dataset.vector
        try dataset.put("2", for: "b")
        var batch = ReplicationBatch()
        batch.checkpoint = (ReplicaID(high: 9, low: 9), PeerCheckpoint(vector: seen))
        #expect(try dataset.replicate(batch).isEmpty)
        #expect(try dataset.record(for: "a")?.isDirty == false)
        #expect(try dataset.record(for: "b")?.isDirty == true)
        #expect(try fixture.store.statistics().datasets.first?.dirtyCount == 1)
    }

    @Test("A tombstone stays, through compaction, once another replica has a part in the dataset")
    func tombstones() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        try one.dataset.put("1", for: "a")
        _ = try two.dataset.replicate(batch(from: one.dataset, to: two.dataset))
        try two.dataset.delete("a")
        try two.store.compact()
        let (store, dataset) = try two.reopened()
        try store.compact()
        #expect(try dataset.record(for: "a", includingDeleted: true)?.isDeleted == true)
        #expect(try dataset.changes(since: 1).keyTexts() == ["a"])
        try store.close()
    }

    @Test("A deletion of the dataset takes what it has seen, and nothing else")
    func lifecycle() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        try one.dataset.put("1", for: "a")
        _ = try two.dataset.replicate(batch(from: one.dataset, to: two.dataset))
        try one.store.deleteDataset("main")
        let deleted = try #require(
            try one.store.datasetForSync("main", creating: false)?.knowledge())
        #expect(deleted.lifecycle.isDeleted)
        #expect(try one.store.datasetNamesForSync() == ["main"])
        #expect(try one.store.existingDataset("main") == nil)
        var batch = ReplicationBatch()
        batch.lifecycle = deleted.lifecycle
        batch.seen = deleted.vector
        #expect(try two.dataset.replicate(batch).isEmpty)
        let (store, dataset) = try two.reopened()
        #expect(try dataset.get("a") == nil)
        #expect(try dataset.records(includingDeleted: true).collect().isEmpty)
        try store.close()
    }

    @Test("Asking for a dataset in sync creates none unless told to, and then an unseen one")
    func datasetForSync() throws {
        let fixture = try StoreFixture()
        #expect(try fixture.store.datasetForSync("new", creating: false) == nil)
        let made = try #require(try fixture.store.datasetForSync("new", creating: true))
        #expect(try fixture.store.existingDataset("new") == nil, "it is created deleted")
        #expect(try made.knowledge().vector.isEmpty && made.knowledge().lifecycle.isDeleted)
    }

    @Test("Under a new replica id counting begins anew, and old writes stay what they were")
    func renewal() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("1", for: "a")
        let old = fixture.store.replicaID
        let record = try fixture.dataset.record(for: "a")
        try fixture.store.renewReplicaID()
        let new = fixture.store.replicaID
        #expect(new != old)
        let dot = try fixture.dataset.put("2", for: "b")
        #expect(dot == Dot(replica: new, counter: 1))
        let (store, dataset) = try fixture.reopened()
        #expect(store.replicaID == new)
        #expect(try dataset.record(for: "a") == record)
        #expect(try dataset.put("3", for: "c") == Dot(replica: new, counter: 2))
        #expect(try dataset.vector[old] == 1 && dataset.vector[new] == 2)
        try store.compact()
        try store.close()
        let last = try Store.open(at: fixture.path, options: quickOptions())
        #expect(last.replicaID == new)
        #expect(try last.dataset("main").put("4", for: "d").counter == 3)
        try last.close()
    }

    @Test("A dataset beyond the bound of a batch joins a lifecycle that wipes nothing")
    func lifecycleOfLargeDataset() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        let value = [UInt8](repeating: 0, count: 64 << 20)
        for index in 0...(Limits.batchBytesMax / value.count) {
            try one.dataset.put(value, for: bytes("key \(index)"))
        }
        var batch = ReplicationBatch()
        batch.lifecycle = try two.dataset.knowledge().lifecycle
        #expect(try one.dataset.replicate(batch).isEmpty)
        #expect(try one.dataset.count() == Limits.batchBytesMax / value.count + 1)
    }

    @Test("What counts further than anyone can is refused, and the store can be opened again")
    func impossibleCounters() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        let before = try dataset.knowledge()
        let other = ReplicaID(high: 7, low: 7)
        for counter in [1 << 56 + 1, UInt64(Int64.max) - 1, .max] {
            let dot = Dot(replica: other, counter: counter)
            let vector = VersionVector([dot])
            func write(_ dot: Dot, _ vector: VersionVector) -> ReplicatedWrite {
                let version = Version(dot: dot, vector: vector, time: HybridTime(rawValue: 1))
                return ReplicatedWrite(
                    key: bytes("b"), content: .adopt(value: [1], version: version), expected: nil)
            }
            var batches = [ReplicationBatch](repeating: ReplicationBatch(), count: 8)
            batches[0].writes = [write(dot, VersionVector())]
            batches[1].writes = [
                write(Dot(replica: ReplicaID(high: 8, low: 8), counter: 1), vector)
            ]
            batches[2].seen = vector
            batches[3].checkpoint = (
                other, PeerCheckpoint(pulledThrough: 0, pushedThrough: 0, vector: vector)
            )
            batches[4].lifecycle = before.lifecycle
            batches[4].lifecycle?.wiped = vector
            batches[5].lifecycle = before.lifecycle
            batches[5].lifecycle?.time = HybridTime(rawValue: .max)
            let position = SyncCount(rawValue: counter)
            batches[6].checkpoint = (other, PeerCheckpoint(pulledThrough: position))
            batches[7].checkpoint = (other, PeerCheckpoint(pushedThrough: position))
            for batch in batches { expectError(.invalidArgument) { try dataset.replicate(batch) } }
        }
        #expect(try dataset.knowledge() == before)
        var greatest = ReplicationBatch()
        greatest.seen = VersionVector([Dot(replica: other, counter: 1 << 56)])
        greatest.checkpoint = (other, PeerCheckpoint(pulledThrough: SyncCount(rawValue: 1 << 56)))
        #expect(try dataset.replicate(greatest).isEmpty)
        let (store, reopened) = try fixture.reopened()
        #expect(try reopened.vector[other] == 1 << 56)
        try store.close()
    }

    @Test("The ancestor of a conflict is the newest version both descend from")
    func ancestor() throws {
        var options = quickOptions()
        options.historyVersions = 5
        let (one, two) = (try StoreFixture(options), try StoreFixture(options))
        try one.dataset.put("oldest", for: "a")
        try one.dataset.put("base", for: "a")
        _ = try two.dataset.replicate(batch(from: one.dataset, to: two.dataset))
        try one.dataset.put("theirs", for: "a")
        try two.dataset.put("mine", for: "a")
        try two.dataset.put("mine again", for: "a")
        let theirs = try #require(try one.dataset.record(for: "a"))
        let mine = try #require(try two.dataset.record(for: "a"))
        try two.store.compact()
        let found = try two.dataset.ancestor(
            of: bytes("a"), local: mine.version, remote: theirs.version)
        #expect(found?.valueText == "base")
        let stranger = Version(
            dot: Dot(replica: ReplicaID(high: 5, low: 5), counter: 1), vector: VersionVector(),
            time: HybridTime(rawValue: 1))
        #expect(
            try two.dataset.ancestor(of: bytes("a"), local: mine.version, remote: stranger) == nil)
    }

    @Test("The version that a peer has stays as the ancestor, even without history")
    func ancestorWithoutHistory() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        try one.dataset.put("base", for: "a")
        _ = try two.dataset.replicate(batch(from: one.dataset, to: two.dataset))
        try one.dataset.put("theirs", for: "a")
        for index in 0..<5 { try two.dataset.put("mine \(index)", for: "a") }
        try two.store.compact()
        let theirs = try #require(try one.dataset.record(for: "a"))
        let mine = try #require(try two.dataset.record(for: "a"))
        let found = try two.dataset.ancestor(
            of: bytes("a"), local: mine.version, remote: theirs.version)
        #expect(found?.valueText == "base")
    }
}
