import FoundationEssentials
import Synchronization
import Tidemark
import TidemarkSync

/// The identities of all pools, as the hub's store holds them. All calls block on the disk, and are
/// made in closures that `HubThreads` runs.
///
/// Facts and logins of an identity change in one batch, which is written only if nobody has changed
/// them meanwhile. So two requests that come at once cannot make two identities of one login.
struct IdentityDirectory: Sendable {
    private final class Shared: Sendable {
        /// Grows when an identity that could be used cannot be any more, or not by a guest.
        let epoch = Atomic<UInt64>(1)
        /// Those that a merge or a deletion is at work on.
        let busy = Mutex<Set<IdentityID>>([])
        let calls = IdentityCalls()
        let listeners = Mutex<[@Sendable (IdentityID) -> Void]>([])
        let sink = Mutex<(any ChangeSink)?>(nil)
    }

    let clock: any SyncEnvironment
    private let shared = Shared()

    /// How often a change is tried that others keep coming before.
    static let attemptsMax = 8

    init(clock: any SyncEnvironment) {
        self.clock = clock
    }

    /// What was found of an identity before this changed may not hold any more.
    var epoch: UInt64 { shared.epoch.load(ordering: .acquiring) }

    /// Calls that were let in and are under way.
    var calls: IdentityCalls { shared.calls }

    /// Has somebody be told of each identity that cannot be used any more, at least not by who used
    /// it as a guest: who holds anything open for it closes that.
    ///
    /// - Parameter body: called on a thread of the store, at least once for an identity; must not
    ///   block.
    func whenAccessEnds(_ body: @escaping @Sendable (IdentityID) -> Void) {
        shared.listeners.withLock { $0.append(body) }
    }

    /// To be called when the facts in the store say that an identity cannot be used any more, or
    /// that a guest is none any more.
    func endAccess(of id: IdentityID) {
        shared.epoch.wrappingAdd(1, ordering: .acquiringAndReleasing)
        let listeners = shared.listeners.withLock { $0 }
        for tell in listeners { tell(id) }
    }

    /// Has a sink be told of each dataset that gets records from an identity that goes.
    func passChanges(to sink: any ChangeSink) {
        shared.sink.withLock { $0 = sink }
    }

    /// Runs what puts records into a dataset, of which streams and devices are told as of what a
    /// replica pushes.
    ///
    /// - Parameter name: in the store.
    func passingOn(_ name: String, _ body: () throws -> Void) throws {
        guard let sink = shared.sink.withLock({ $0 }) else { return try body() }
        try sink.willChange([name])
        defer { sink.didChange([name]) }
        try body()
    }

    /// To be called behind ``endAccess(of:)``, before anything of the identities is moved or
    /// deleted.
    ///
    /// - Throws: `APIFailure` with `tooManyRequests` while calls that were let in before are under
    ///   way. None are let in any more, so that has an end.
    func requireQuiet(_ ids: Set<IdentityID>) throws(APIFailure) {
        guard shared.calls.areQuiet(ids) else {
            throw APIFailure(
                .tooManyRequests,
                "the identity has requests under way, which end first; repeat the request",
                retryAfterSeconds: 1)
        }
    }

    // MARK: - Reading

    /// O(log n).
    func identity(_ id: IdentityID, in store: Store) throws(StoreError) -> IdentityFacts? {
        try held(id, in: store)?.facts
    }

    /// Facts, and the write that made them.
    func held(
        _ id: IdentityID, in store: Store
    ) throws(StoreError) -> (facts: IdentityFacts, dot: Dot)? {
        guard let dataset = try store.existingDataset(HubDatasets.identities),
            let record = try dataset.record(for: Array(id.text.utf8)), let value = record.value
        else { return nil }
        return (try IdentityFacts(id, value), record.version.dot)
    }

    /// Who has a login; nil if nobody.
    func owner(
        of login: VerifiedLogin, in pool: PoolID, _ store: Store
    ) throws(StoreError) -> IdentityID? {
        guard let dataset = try store.existingDataset(HubDatasets.logins),
            let value = try dataset.get(Self.key(of: login, in: pool))
        else { return nil }
        return String(validating: value, as: UTF8.self).flatMap { IdentityID($0) }
    }

    /// In the order of their ids. O(identities of all pools behind `after`), since there are few
    /// pools.
    ///
    /// - Parameters:
    ///   - after: only ids behind this one; nil for all.
    ///   - limit: at most so many.
    func identities(
        of pool: PoolID, after: IdentityID?, limit: Int, in store: Store
    ) throws(StoreError) -> [IdentityFacts] {
        guard limit > 0, let dataset = try store.existingDataset(HubDatasets.identities) else {
            return []
        }
        // The key behind another one is that one and a zero byte.
        let range = KeyRange(from: after.map { Array($0.text.utf8) + [0] })
        let cursor = try dataset.records(in: range)
        var found: [IdentityFacts] = []
        while found.count < limit, let record = try cursor.next() {
            guard let id = record.keyText.flatMap({ IdentityID($0) }), let value = record.value
            else { continue }
            let facts = try IdentityFacts(id, value)
            if facts.pool == pool { found.append(facts) }
        }
        return found
    }

    // MARK: - Changing

    /// A new identity with these logins; without any, a guest.
    ///
    /// - Throws: `versionMismatch` if one of the logins has an owner by now.
    func create(
        _ logins: [VerifiedLogin], in pool: PoolID, _ store: Store
    ) throws(StoreError) -> IdentityFacts {
        let facts = IdentityFacts(
            id: Self.drawnID(in: pool), pool: pool, created: clock.now(), logins: logins)
        var batch = WriteBatch()
        try put(facts, over: nil, &batch, store)
        try own(logins, facts, &batch, store)
        try store.write(batch)
        return facts
    }

    /// Changes facts by a compare-and-set.
    func put(
        _ facts: IdentityFacts, over dot: Dot?, _ batch: inout WriteBatch, _ store: Store
    ) throws(StoreError) {
        batch.put(
            try facts.encoded(), for: Array(facts.id.text.utf8),
            in: try store.dataset(HubDatasets.identities), ifAt: dot)
    }

    /// Gives logins that nobody has to an identity.
    func own(
        _ logins: [VerifiedLogin], _ facts: IdentityFacts, _ batch: inout WriteBatch,
        _ store: Store
    ) throws(StoreError) {
        guard !logins.isEmpty else { return }
        let dataset = try store.dataset(HubDatasets.logins)
        for login in logins {
            batch.put(
                Array(facts.id.text.utf8), for: Self.key(of: login, in: facts.pool), in: dataset,
                ifAt: nil)
        }
    }

    /// Reads facts, lets the body change them, and writes them, until nobody has come before.
    ///
    /// - Parameter body: changes the facts and adds to the batch; called for each attempt.
    /// - Returns: the facts as they are now; nil if there is no such identity.
    @discardableResult
    func change(
        _ id: IdentityID, in store: Store,
        _ body: (inout IdentityFacts, inout WriteBatch) throws -> Void
    ) throws -> IdentityFacts? {
        for _ in 0..<Self.attemptsMax {
            guard let held = try held(id, in: store) else { return nil }
            var facts = held.facts
            var batch = WriteBatch()
            try body(&facts, &batch)
            guard facts != held.facts || !batch.isEmpty else { return facts }
            facts.modified = clock.now()
            try put(facts, over: held.dot, &batch, store)
            if try Self.wrote(batch, store) { return facts }
        }
        throw Self.overtaken
    }

    /// Takes logins away from an identity. One without any is not usable any more, and no guest: so
    /// nobody who knows its id gets what it had.
    ///
    /// - Throws: `APIFailure` with `notAuthorized` if it has not all of them, `tooManyRequests`
    ///   while it is being merged.
    func unlink(
        _ logins: [VerifiedLogin], from id: IdentityID, in store: Store
    ) throws -> IdentityFacts? {
        // What goes into one that is not usable any more would not be anybody's.
        if let facts = try identity(id, in: store) { _ = try resume(facts, in: store) }
        let facts = try change(id, in: store) { facts, batch in
            guard facts.merging == nil, facts.absorbing.isEmpty else { throw Self.overtaken }
            guard facts.isEnabled, Set(logins).isSubset(of: facts.logins) else {
                throw APIFailure(
                    .notAuthorized, "the identity has not signed in with that; look at its logins")
            }
            let dataset = try store.dataset(HubDatasets.logins)
            for login in logins {
                batch.delete(Self.key(of: login, in: facts.pool), in: dataset)
            }
            facts.logins.removeAll { logins.contains($0) }
            if facts.logins.isEmpty { facts.isEnabled = false }
        }
        if facts?.isEnabled == false { endAccess(of: id) }
        return facts
    }

    /// Deletes an identity with all that it has. Goes on where it was stopped if it is called
    /// again.
    ///
    /// - Returns: false if there is none.
    /// - Throws: `APIFailure` with `tooManyRequests` while it is being merged or deleted, or has
    ///   calls under way: it cannot be used any more then, and is deleted when this is repeated.
    func delete(_ id: IdentityID, in store: Store) throws -> Bool {
        // Neither may a merge that was stopped go on with one that is gone.
        if let facts = try identity(id, in: store) { _ = try resume(facts, in: store) }
        return try reserve([id]) {
            let known = try change(id, in: store) { facts, batch in
                guard facts.merging == nil, facts.absorbing.isEmpty else { throw Self.overtaken }
                facts.isEnabled = false
                let dataset = try store.dataset(HubDatasets.logins)
                for login in facts.logins {
                    batch.delete(Self.key(of: login, in: facts.pool), in: dataset)
                }
                facts.logins = []
            }
            guard let gone = known else { return false }
            endAccess(of: id)
            try requireQuiet([id])
            while let name = try Self.firstDataset(of: id, store) {
                try store.deleteDataset(name)
                try forget(dataset: name, in: store)
            }
            try forget(gone, in: store)
            try store.existingDataset(HubDatasets.identities)?.delete(Array(id.text.utf8))
            // Whoever began to listen meanwhile did so before its devices were forgotten.
            endAccess(of: id)
            return true
        }
    }

    // MARK: - Support

    /// Runs a body that nobody else runs for any of the identities at that time.
    ///
    /// - Throws: `APIFailure` with `tooManyRequests` if somebody does; what the body throws.
    func reserve<Value>(_ ids: Set<IdentityID>, _ body: () throws -> Value) throws -> Value {
        let isFree = shared.busy.withLock { busy in
            guard busy.isDisjoint(with: ids) else { return false }
            busy.formUnion(ids)
            return true
        }
        guard isFree else {
            throw APIFailure(
                .tooManyRequests, "the identity is being merged or deleted; repeat the request",
                retryAfterSeconds: 1)
        }
        defer { shared.busy.withLock { $0.subtract(ids) } }
        return try body()
    }

    /// Removes what the hub keeps beside a dataset that is gone for good.
    func forget(dataset name: String, in store: Store) throws(StoreError) {
        let prefix = Array(name.utf8) + [0]
        try Self.clear(prefix, in: HubDatasets.sheets, store)
        try Self.clear(prefix, in: HubDatasets.subscriptions, store)
    }

    /// Removes what the hub keeps beside an identity that is gone for good.
    func forget(_ facts: IdentityFacts, in store: Store) throws(StoreError) {
        try Self.clear(DeviceBook.devicesPrefix(facts.id), in: HubDatasets.devices, store)
        try Self.clear(
            DeviceBook.noticesPrefix(facts.pool, facts.id), in: HubDatasets.notices, store)
    }

    private static func clear(
        _ prefix: [UInt8], in name: String, _ store: Store
    ) throws(StoreError) {
        guard let dataset = try store.existingDataset(name) else { return }
        while true {
            let records = try dataset.records(in: .prefix(prefix), limit: 1_000).collect()
            guard !records.isEmpty else { return }
            var batch = WriteBatch()
            for record in records { batch.delete(record.key, in: dataset) }
            try store.write(batch)
        }
    }

    /// False if somebody has changed before what the batch was made of.
    static func wrote(_ batch: WriteBatch, _ store: Store) throws(StoreError) -> Bool {
        do throws(StoreError) {
            try store.write(batch)
            return true
        } catch {
            guard error.code == .versionMismatch else { throw error }
            return false
        }
    }

    /// The name in the store of the first of its datasets; nil if it has none.
    static func firstDataset(of id: IdentityID, _ store: Store) throws(StoreError) -> String? {
        try store.datasetNames(prefix: StoreNames.prefix(of: id), limit: 1).first
    }

    static let overtaken = APIFailure(
        .tooManyRequests, "the identity is changed by many at once; repeat the request",
        retryAfterSeconds: 1)

    static func key(of login: VerifiedLogin, in pool: PoolID) -> [UInt8] {
        var key = Array(pool.text.utf8) + [0]
        key += Array(login.provider.utf8) + [0]
        return key + Array(login.subject.utf8)
    }

    /// The region of the pool, so far as there is room for it, and a UUID.
    static func drawnID(in pool: PoolID) -> IdentityID {
        let region = pool.text.prefix { $0 != ":" }.prefix(18)
        let name = region == "hub" ? "id" : region
        guard let id = IdentityID("\(name):\(UUID().uuidString.lowercased())") else {
            preconditionFailure("a new identity has an id that none can have")
        }
        return id
    }
}

extension IdentityDirectory: IdentityListing {
    func identityIDs(
        of pool: PoolID, after: IdentityID?, limit: Int, in store: Store
    ) throws(StoreError) -> [IdentityID] {
        try identities(of: pool, after: after, limit: limit, in: store).map(\.id)
    }
}
