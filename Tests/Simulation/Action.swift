/// What happens on the way of each message of one exchange: a few percent of each mishap.
package struct Weather: Hashable, Sendable {
    /// Everything that is drawn on the way follows from it.
    package var seed: UInt64
    package var lossPercent = 0
    package var repeatPercent = 0
    package var damagePercent = 0
    /// Milliseconds that a message takes at most. Two that are under way at once may overtake.
    package var delayMax: UInt64 = 1

    package static let fair = Weather(seed: 0)
}

extension Weather: CustomStringConvertible {
    package var description: String {
        guard self != .fair else { return "fair" }
        return
            "loss \(lossPercent)% repeat \(repeatPercent)% damage \(damagePercent)% "
            + "delay \(delayMax) ms"
    }
}

/// One thing that happens to the replicas, as the nemesis decided it. Replicas, datasets and keys
/// are numbers. An action stands for itself: whatever else it needs to be drawn follows from a
/// seed in it, so that the rest of a schedule means the same without it.
package enum Action: Hashable, Sendable {
    case write(at: Int, dataset: Int, key: Int, isDeletion: Bool, isDurable: Bool, padding: Int)
    /// Several writes at once, all durable.
    case batch(at: Int, dataset: Int, keys: [Int])
    case read(at: Int, dataset: Int, key: Int)
    case exchange(from: Int, to: Int, pageRecordsMax: Int, Weather)
    case compact(at: Int)
    /// Closed and opened again.
    case reopen(at: Int)
    /// The power fails after so many more calls to the disk, 0 for at once, and of what was not
    /// synced so many percent survive; comes up after so many milliseconds.
    case powerLoss(at: Int, afterCalls: Int, survivalPercent: Int, seed: UInt64, downFor: UInt64)
    /// The process is killed; nothing is lost that was written.
    case kill(at: Int, downFor: UInt64)
    case backUp(at: Int)
    /// Goes on from the last backup, under a new id, as the store's own restore makes it.
    case restore(at: Int)
    /// With `isWatched` the whole disk is put back to the last snapshot of it, behind the store's
    /// back. It then writes so often, fewer times than it lost, before it meets the peer that has
    /// seen most of it. Otherwise its files are put back from a copy; it then writes as often as it
    /// says, and meets nobody in particular.
    case rollBack(at: Int, writes: Int, isWatched: Bool)
    /// A copy of one replica's directory takes the place of another replica.
    case copy(from: Int, onto: Int)
    case setClock(at: Int, by: Int64)
    case cut(Int, Int)
    case join(Int, Int)
    /// So many more bytes fit on the disk, for so many milliseconds.
    case fillDisk(at: Int, room: Int, for: UInt64)
    case slowDown(at: Int, milliseconds: UInt64)
    case deleteDataset(at: Int, dataset: Int)
    /// Neither of the two remembers how far their exchange has come.
    case forget(Int, Int)
    /// One replica waits for another one no longer.
    case retire(at: Int, peer: Int)
    /// Keeps a part of a dataset from now on, or all of it again.
    case setScope(at: Int, dataset: Int, SimulatedScope?)
    /// Somebody lets a write count that is held because of its date, or never count.
    case decideHeld(at: Int, dataset: Int, isReleased: Bool)
    /// Somebody settles a conflict that waits.
    case settle(at: Int, dataset: Int)
    /// The second dataset is to go into the first.
    case noteMerged(at: Int)
    /// Writes all of the large dataset, once.
    case fillLarge(at: Int)
    /// A put, not durable, that expires after so many milliseconds of the replica's clock.
    case writeExpiring(at: Int, dataset: Int, key: Int, life: UInt64)
    /// Puts tombstones in the place of what has expired.
    case sweep(at: Int)
    /// Notes what a dataset holds now.
    case remember(at: Int, dataset: Int)
    /// Reads all moments that were noted, as they were.
    case recall(at: Int)
    /// A bundle is made, and arrives later.
    case carry(Carriage)
}

/// An action and how many milliseconds after the one before it happens.
package struct Step: Hashable, Sendable, CustomStringConvertible {
    package let after: UInt64
    package let action: Action

    package init(after: UInt64, action: Action) {
        self.after = after
        self.action = action
    }

    package var description: String { "+\(after) ms \(action)" }
}

extension Action: CustomStringConvertible {
    package var description: String {
        switch self {
        case .write(let at, let dataset, let key, let isDeletion, let isDurable, let padding):
            """
            \(at): \(isDeletion ? "delete" : "put") d\(dataset)/k\(key)\
            \(isDurable ? " durably" : ""), \(padding) bytes more
            """
        case .batch(let at, let dataset, let keys): "\(at): batch d\(dataset) keys \(keys)"
        case .read(let at, let dataset, let key): "\(at): read d\(dataset)/k\(key)"
        case .exchange(let from, let to, let records, let weather):
            "\(from) > \(to): exchange, \(records) records a page, \(weather)"
        case .compact(let at): "\(at): compact"
        case .reopen(let at): "\(at): close and open"
        case .powerLoss(let at, let calls, let percent, _, let downFor):
            "\(at): power fails after \(calls) calls, \(percent)% survive, down \(downFor) ms"
        case .kill(let at, let downFor): "\(at): killed, down \(downFor) ms"
        case .backUp(let at): "\(at): back up"
        case .restore(let at): "\(at): restore the backup"
        case .rollBack(let at, let writes, let isWatched):
            "\(at): disk rolled back, \(writes) writes" + (isWatched ? "" : ", unwatched")
        case .copy(let from, let onto): "\(from): copied onto \(onto)"
        case .setClock(let at, let by): "\(at): clock set by \(by) ms"
        case .cut(let one, let other): "\(one) | \(other): cut"
        case .join(let one, let other): "\(one) - \(other): joined"
        case .fillDisk(let at, let room, let duration):
            "\(at): disk full after \(room) bytes, for \(duration) ms"
        case .slowDown(let at, let milliseconds): "\(at): slower by \(milliseconds) ms"
        case .deleteDataset(let at, let dataset): "\(at): delete dataset d\(dataset)"
        case .forget(let one, let other): "\(one) - \(other): checkpoints forgotten"
        case .retire(let at, let peer): "\(at): retire \(peer)"
        case .setScope(let at, let dataset, let scope):
            "\(at): keeps \(scope.map { "\($0)" } ?? "all") of d\(dataset)"
        case .decideHeld(let at, let dataset, let isReleased):
            "\(at): \(isReleased ? "release" : "discard") what is held of d\(dataset)"
        case .settle(let at, let dataset): "\(at): settle what waits in d\(dataset)"
        case .noteMerged(let at): "\(at): d1 is to go into d0"
        case .fillLarge(let at): "\(at): fill the large dataset"
        case .writeExpiring(let at, let dataset, let key, let life):
            "\(at): put d\(dataset)/k\(key) for \(life) ms"
        case .sweep(let at): "\(at): sweep"
        case .remember(let at, let dataset): "\(at): remember d\(dataset)"
        case .recall(let at): "\(at): recall"
        case .carry(let carriage): "\(carriage)"
        }
    }
}
