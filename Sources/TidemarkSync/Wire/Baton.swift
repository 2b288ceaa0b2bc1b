import Tidemark

// How a store finds out that it went back in time, or was copied, although its counters do not
// show it: it wrote as much again as it had lost before it met anyone.
//
// Whenever writes of a replica leave it that no one has been given yet, it draws a token (the
// baton), which goes with them and with everything that says that they were seen. Its number is
// one greater than the one before, the rest of it is random, and it is on the replica's own disk
// before it leaves. So whoever has seen a write of a replica also has a baton that was drawn after
// the write, and:
//
//     a store that is shown a baton of its own id which it never drew
//     has forgotten writes that others have, or is not the only one that writes under its id.
//
// Which is all that is to be known: it takes a new id, and exchanges anew what lies here under the
// old one (`SyncSession+Rollback`). A baton that it drew, however old, says nothing against it: the
// others need not have the newest. So nothing is ever confirmed, a lost answer does no harm, and
// where nothing new is given away nothing is drawn.
//
// Two different batons of one number are a fork that neither writer may know of. Whoever is shown
// both keeps neither, but that there were two (`random` 0), which nobody has drawn: so each of the
// writers finds out when it is shown that. So does everyone else who has seen writes of one of them
// and may never be given the other's, since the dots are the same: who has kept a baton of that id
// and learns that there were two disputes the id, as the writers do.
//
// What this cannot show: a store that went back behind a write that it gave to a peer, and then
// only ever meets others that heard nothing of that peer. They become unequal until it meets
// anyone who has; so do the digests. Nor does anyone who is no writer learn that there were two
// from batons of different numbers, unless a writer that found out had drawn either number.

/// A token that a replica drew when its writes to a dataset left it.
struct Baton: Hashable, Sendable {
    let replica: ReplicaID
    /// 1 for the first that the replica drew for the dataset.
    let number: UInt64
    /// 0: two of this number were met.
    let random: UInt64

    /// Far above what a replica can draw, and far below where a number ends.
    static let numberMax: UInt64 = 1 << 56

    /// Of two batons of one replica what is to be kept. Commutative, associative and idempotent.
    func joined(with other: Baton) -> Baton {
        guard number == other.number else { return number > other.number ? self : other }
        return random == other.random
            ? self : Baton(replica: replica, number: number, random: 0)
    }
}

/// What is remembered of the batons of one replica in one dataset.
struct BatonRecord: Hashable, Sendable {
    enum Standing: UInt8, Hashable, Sendable {
        /// An id of this store under which nobody else writes, or an id that is none of its own.
        case plain = 0
        /// An id under which two stores wrote, of which this one may be one. What lies here under
        /// it is to be exchanged anew.
        case disputed = 1
        /// An id that was disputed, and is none under which this store writes. What lies here under
        /// it now is what others have, too, so it is as good as anybody else's.
        case foreign = 2
    }

    struct Drawn: Hashable, Sendable {
        var number: UInt64
        var random: UInt64
        /// The replica's counter in the dataset when it was drawn; 0 if it is another one's.
        var through: UInt64
    }

    /// As many as a peer may be behind without being able to hide a fork: each is drawn only when
    /// something new leaves, and the newest few are what peers have.
    static let drawnMax = 8

    var standing = Standing.plain
    /// In the order of their numbers, the newest last: of an own id the last few that were drawn;
    /// of another one the newest that was met and, before it, up to which number there were two
    /// (`random` 0), if that is not the newest.
    var drawn: [Drawn] = []

    func baton(of replica: ReplicaID) -> Baton? {
        drawn.last.map { Baton(replica: replica, number: $0.number, random: $0.random) }
    }

    /// The number up to which it is known that there were two stores, since two batons of one
    /// number were met or somebody told that they were; 0 if it is not. Another sign of no greater
    /// number says nothing new, whatever was drawn after it.
    var metTwoThrough: UInt64 { drawn.last { $0.random == 0 }?.number ?? 0 }

    var hasMetTwo: Bool { metTwoThrough > 0 }

    /// Of another id: whether a shown baton is the first to tell, or to make known beside the
    /// newest that was met, that there were two.
    func isNewlyMetTwo(by shown: Baton) -> Bool {
        guard let known = drawn.last, known.random != 0, shown.number > metTwoThrough else {
            return false
        }
        return shown.random == 0
            || known.number == shown.number && known.random != shown.random
    }

    /// Of an own id: whether somebody else drew that.
    func isForeign(_ shown: Baton) -> Bool {
        if shown.number > drawn.last?.number ?? 0 { return true }
        return drawn.contains { $0.number == shown.number && $0.random != shown.random }
    }

    /// Of the given id: whether another baton of one number is known here.
    func isContradicted(by shown: Baton, of id: ReplicaID) -> Bool {
        shown.replica == id
            && drawn.contains { $0.number == shown.number && $0.random != shown.random }
    }

    /// Of another id: takes up what a peer knows of it. Returns whether that says anything new.
    ///
    /// That there were two is not forgotten for a newer baton, or whoever remembers it would tell
    /// it as news again and again.
    mutating func take(_ shown: Baton) -> Bool {
        let joined = baton(of: shown.replica).map { $0.joined(with: shown) } ?? shown
        let through = max(metTwoThrough, shown.random == 0 ? shown.number : 0)
        var next = [Drawn(number: joined.number, random: joined.random, through: 0)]
        if through > 0, joined.random != 0 {
            next.insert(Drawn(number: through, random: 0, through: 0), at: 0)
        }
        defer { drawn = next }
        return next != drawn
    }

    mutating func append(_ next: Drawn) {
        drawn.append(next)
        drawn.removeFirst(max(0, drawn.count - Self.drawnMax))
    }
}

extension BatonRecord {
    /// Byte of the standing, varint n, then n times varint number, 8 bytes random and varint
    /// counter.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.put(standing.rawValue)
        writer.putCount(drawn.count)
        for one in drawn {
            writer.putVarint(one.number)
            writer.putFixed(one.random)
            writer.putVarint(one.through)
        }
        return writer.bytes
    }

    /// nil if the bytes are no such record: it then counts as lost, which is safe.
    init?(decoding bytes: [UInt8]) {
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            let first = try reader.takeByte()
            guard let standing = Standing(rawValue: first) else { return nil }
            self.standing = standing
            for _ in 0..<(try reader.takeCount(of: "batons", bytesEach: 10, max: Self.drawnMax)) {
                drawn.append(
                    Drawn(
                        number: try reader.takeVarint(),
                        random: try reader.takeFixed(UInt64.self),
                        through: try reader.takeVarint()))
            }
            try reader.finish()
        } catch {
            return nil
        }
    }
}
