import TestSupport
import Tidemark

// Records that expire: each replica goes by its own clock, and sweeps in its own time.

extension World {
    /// By which all records have expired that are to expire in this run, in milliseconds since
    /// 1970; zero if there are none. Others live for longer than any run lasts.
    static let expiresInRunMax: UInt64 = 10 * 60_000

    /// When a record expires that is to live so long; nil if it is to live for ever.
    func expiry(after life: UInt64?, at replica: SimulatedReplica) -> UInt64? {
        guard let life else { return nil }
        let end = replica.storage.clockMilliseconds + life
        if life <= Self.expiresInRunMax { lastExpiry = max(lastExpiry, end) }
        return end
    }

    /// Whether a write counts as a deletion by now on the first replica.
    func isGone(_ write: ModelWrite) -> Bool {
        write.isDeletion
            || (write.expiresAt.map { $0 <= replicas[0].storage.clockMilliseconds } ?? false)
    }

    /// What a reader gets is what is stored, unless that has expired by the replica's clock.
    func checkExpiry(_ key: ModelKey, _ replica: SimulatedReplica) throws(StoreError) {
        guard settings.traits.contains(.expiry),
            let found = try replica.store?.existingDataset(SimulatedReplica.name(key.dataset))
        else { return }
        let name = SimulatedReplica.key(key.number)
        let (read, record) = (try found.get(name), try found.storedRecord(for: name))
        let now = replica.storage.clockMilliseconds
        let hasExpired = record?.expiresAt.map { $0 <= now } ?? false
        guard read != (hasExpired ? nil : record?.value) else { return }
        fail(
            .staleRead,
            "\(key) at \(replica.index), \(hasExpired ? "expired" : "alive"): "
                + "\(Self.text(record)) is read as \(read.map { WriteModel.numbers(in: $0) } ?? [])"
        )
    }

    /// A tombstone takes the place of each value that has expired.
    func sweep(_ at: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store else { return }
        do throws(StoreError) {
            let count = try store.deleteExpired()
            note("\(at): swept \(count)")
        } catch {
            failed(error, "sweeping", at)
        }
    }

    /// What has expired is told to a part as it is stored. Where what leaves is kept, an older
    /// version stays as long as what has expired elsewhere is a value outside of the part, and goes
    /// once somebody has swept it.
    func sweepWhatPartsAwait() {
        guard settings.keepsOutside, settings.traits.contains(.expiry) else { return }
        for replica in replicas { sweep(replica.index) }
    }

    /// Time passes until every clock has come by what is to expire.
    func letRecordsExpire() {
        let now = replicas.map(\.storage.clockMilliseconds).min() ?? lastExpiry
        guard lastExpiry >= now else { return }
        time.pass(to: time.now + (lastExpiry - now) + 1)
        setClocks()
    }
}
