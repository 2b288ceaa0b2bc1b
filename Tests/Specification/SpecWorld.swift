/// What can happen in a schedule.
package enum SpecStep: Hashable, Sendable {
    case put(at: Int, key: Int)
    case delete(at: Int, key: Int)
    case exchange(from: Int, to: Int, cut: SpecCut?)
    /// The responder puts a key just before it answers the message of that number.
    case crossedExchange(from: Int, to: Int, message: Int, key: Int)
    case forget(at: Int)
    /// The state of a replica is put by, to which it may go back once. Takes no time.
    case backUp(at: Int)
    case restore
    /// What was not synced before the backup was made is lost with the power.
    case losePower
}

extension SpecStep: CustomStringConvertible {
    package var description: String {
        func name(_ replica: Int) -> String { ["a", "b", "c"][replica] }
        switch self {
        case .put(let at, let key): return "\(name(at)) puts k\(key)"
        case .delete(let at, let key): return "\(name(at)) deletes k\(key)"
        case .exchange(let from, let to, let cut):
            let end = cut.map { cut in
                ", cut at the \(cut.losesAnswer ? "answer" : "request") \(cut.message)"
            }
            return "\(name(from)) exchanges with \(name(to))\(end ?? "")"
        case .forget(let at): return "\(name(at)) forgets deletions"
        case .backUp(let at): return "\(name(at)) is backed up"
        case .restore: return "the backup is put back"
        case .losePower: return "the power fails, and what came after the backup is lost"
        case .crossedExchange(let from, let to, let message, let key):
            return "\(name(from)) exchanges with \(name(to)), which puts k\(key) before it "
                + "answers the request \(message)"
        }
    }
}

/// A write as its replica acknowledged it.
package struct SpecWrite: Hashable, Sendable {
    package var name: SpecWriteName
    package var key: UInt8
    package var isDeleted: Bool
    package var version: SpecVersion
    /// The writes to the key that its writer knew of.
    package var past: SpecWrites
}

/// Three replicas, and all that was ever acknowledged.
package struct SpecWorld: Hashable, Sendable {
    package var replicas: [SpecReplica]
    package var writes: [SpecWrite] = []
    package var backup: [SpecReplica] = []
    package var hasRestored = false
    package var hasLostPower = false
    /// Whether anything has left the replica since it was backed up.
    package var hasLeft = false
    /// Whether anything was forgotten.
    package var hasForgotten = false
    /// Writes of which a replica that nobody had ever met has forgotten the deletion.
    package var unnoted = SpecWrites()
    /// Writes that went with a disk, and that nobody else had.
    package var lost = SpecWrites()
    /// Whether a replica that had gone back behind writes of others' met anyone who could not show
    /// it: from then on no baton need show what differs.
    package var isUnnoticed = false

    package init() { replicas = (0..<3).map { SpecReplica($0) } }

    /// What went wrong in a step or in a state.
    package struct Violation: Hashable, Sendable, CustomStringConvertible {
        package enum Kind: String, Hashable, Sendable {
            case dotUsedTwice, vectorClaimsTooMuch, unequal, lostWrite, revived, neverQuiet
            case contended, pageTooLarge, dotOfAnother, newIDWithoutReason
        }

        package var kind: Kind
        package var words: String

        package var description: String { "\(kind.rawValue): \(words)" }
    }

    // MARK: - Steps

    /// - Returns: nil if the step changes nothing, or cannot be.
    package func after(
        _ step: SpecStep, _ settings: SpecSettings
    ) -> (world: SpecWorld, violation: Violation?)? {
        var next = self
        var violation: Violation?
        switch step {
        case .put(let at, let key): next.write(at, key, isDeleted: false, settings)
        case .delete(let at, let key): next.write(at, key, isDeleted: true, settings)
        case .exchange(let from, let to, let cut):
            violation = next.exchange(from, to, settings, cut)
            guard next != self || violation != nil else { return nil }
        case .crossedExchange(let from, let to, let message, let key):
            guard let crossed = next.exchange(from, to, settings, message: message, key: key)
            else { return nil }
            violation = crossed.violation
        case .forget(let at):
            guard
                let unnoted = next.replicas[at].forget(
                    isAged: settings.forgetsByAge, settings.mistakes)
            else { return nil }
            next.hasForgotten = true
            if !settings.mistakes.contains(.collectTombstonesEarly) {
                for key in unnoted {
                    next.unnoted.formUnion(replicas[at].records[key]?.replaced ?? SpecWrites())
                }
            }
        case .backUp(let at):
            guard backup.isEmpty else { return nil }
            next.backup = [replicas[at]]
        case .restore:
            guard let restored = restored(next) else { return nil }
            next = restored
            next.hasRestored = true
        case .losePower:
            guard !hasLeft || settings.mistakes.contains(.skipSyncBeforeSend),
                let restored = restored(next)
            else { return nil }
            next = restored
            next.hasLostPower = true
        }
        next.normalise()
        return (next, violation)
    }

    private mutating func write(
        _ at: Int, _ key: Int, isDeleted: Bool, _ settings: SpecSettings
    ) {
        let ordinal = writes.count { $0.name.replica == at }
        let name = SpecWriteName(replica: at, ordinal: ordinal)
        let version = replicas[at].write(
            name, key: key, isDeleted: isDeleted, of: writes(to: key), settings.mistakes)
        let past = replicas[at].records[key]?.replaced ?? SpecWrites()
        let write = SpecWrite(
            name: name, key: UInt8(key), isDeleted: isDeleted, version: version,
            past: past.subtracting(name.set))
        note(write)
    }

    private mutating func note(_ write: SpecWrite) {
        let place = writes.firstIndex { $0.name.bit > write.name.bit } ?? writes.count
        writes.insert(write, at: place)
    }

    private func writes(to key: Int) -> SpecWrites {
        writes.reduce(into: SpecWrites()) { set, write in
            if write.key == key { set.formUnion(write.name.set) }
        }
    }

    package mutating func exchange(
        _ from: Int, _ to: Int, _ settings: SpecSettings, _ cut: SpecCut? = nil
    ) -> Violation? {
        var exchange = SpecExchange(replicas[from], replicas[to], settings, cut: cut)
        let outcome = exchange.run()
        return take(exchange, outcome, settings)
    }

    /// - Returns: nil if there is no message of that number.
    private mutating func exchange(
        _ from: Int, _ to: Int, _ settings: SpecSettings, message: Int, key: Int
    ) -> (violation: Violation?, hasCrossed: Bool)? {
        let ordinal = writes.count { $0.name.replica == to }
        let crossing = SpecExchange.Crossing(
            message: message, key: key,
            name: SpecWriteName(replica: to, ordinal: ordinal), writes: writes(to: key))
        var exchange = SpecExchange(
            replicas[from], replicas[to], settings, crossing: crossing)
        let outcome = exchange.run()
        guard let version = exchange.crossed else { return nil }
        let past = exchange.crossedPast
        let violation = take(exchange, outcome, settings)
        note(
            SpecWrite(
                name: crossing.name, key: UInt8(key), isDeleted: false, version: version,
                past: past.subtracting(crossing.name.set)))
        return (violation, true)
    }

    private mutating func take(
        _ exchange: SpecExchange, _ outcome: SpecExchange.Outcome, _ settings: SpecSettings
    ) -> Violation? {
        let (from, to) = (exchange.asker.index, exchange.responder.index)
        replicas[from] = exchange.asker
        replicas[to] = exchange.responder
        if let old = backup.first, [from, to].contains(old.index) { hasLeft = true }
        if hasRestored, let old = backup.first,
            [from, to].contains(old.index), !replicas[old.index].hasRenewedID, !lostOwn.isEmpty
        {
            isUnnoticed = true
        }
        if exchange.largestPage > settings.pageRecordsMax {
            return Violation(kind: .pageTooLarge, words: "\(exchange.largestPage) records")
        }
        guard outcome == .contended else { return nil }
        return Violation(kind: .contended, words: "\(from) with \(to)")
    }

    /// Writes that the replica which went back has made and lost, and that somebody else has.
    private var lostOwn: SpecWrites {
        guard let old = backup.first else { return SpecWrites() }
        var others = SpecWrites()
        for replica in replicas where replica.index != old.index {
            others.formUnion(holdings(replica))
        }
        let own = writes.reduce(into: SpecWrites()) { set, write in
            if write.name.replica == old.index, write.version.dot.id == old.index {
                set.formUnion(write.name.set)
            }
        }
        return own.intersection(others).subtracting(replicas[old.index].known)
    }

    /// What a replica knows of, or holds.
    private func holdings(_ replica: SpecReplica) -> SpecWrites {
        var all = replica.known
        for key in 0..<2 { all.formUnion(replica.records[key]?.replaced ?? SpecWrites()) }
        return all
    }

    private func restored(_ world: SpecWorld) -> SpecWorld? {
        guard !hasRestored, !hasLostPower, var old = backup.first, old != replicas[old.index]
        else { return nil }
        var next = world
        old.line = 2
        next.replicas[old.index] = old
        let before = holdings(replicas[old.index])
        var left = SpecWrites()
        for replica in next.replicas { left.formUnion(holdings(replica)) }
        next.lost.formUnion(before.subtracting(left))
        return next
    }

    // MARK: - Canonical form

    /// Counts mean something only beside each other: those of each replica's order of change are
    /// numbered anew from 1, without gaps.
    package mutating func normalise() {
        for owner in 0..<3 {
            var used: UInt64 = 1
            visitCounts(of: owner) { count in used |= 1 << UInt64(min(count, 63)) }
            var rank = [UInt8](repeating: 0, count: 64)
            var next: UInt8 = 0
            for count in 0..<64 where used & 1 << UInt64(count) != 0 {
                rank[count] = next
                next += 1
            }
            visitCounts(of: owner) { count in count = rank[Int(count)] }
        }
    }

    private mutating func visitCounts(of owner: Int, _ body: (inout UInt8) -> Void) {
        let ids = Array(replicas[owner].ownIDs)
        for index in 0..<3 { Self.visit(&replicas[index], of: owner, ids, body) }
        if !backup.isEmpty {
            if hasRestored || hasLostPower {
                // It is only asked for its number.
                backup[0] = SpecReplica(backup[0].index)
            } else {
                Self.visit(&backup[0], of: owner, ids, body)
            }
        }
    }

    private static func visit(
        _ replica: inout SpecReplica, of owner: Int, _ ids: [Int], _ body: (inout UInt8) -> Void
    ) {
        if replica.index == owner {
            body(&replica.syncCount)
            for key in 0..<2 {
                if var record = replica.records[key] {
                    body(&record.count)
                    replica.records[key] = record
                }
            }
            for id in 0..<4 {
                if var peer = replica.peers[id] {
                    body(&peer.pushedThrough)
                    replica.peers[id] = peer
                }
            }
        } else {
            for id in ids {
                if var peer = replica.peers[id] {
                    body(&peer.pulledThrough)
                    replica.peers[id] = peer
                }
            }
        }
    }

    /// The same with the names of the keys exchanged, which mean nothing but an order in which what
    /// is doubtful is written anew.
    package var swappingKeys: SpecWorld {
        var other = self
        for index in 0..<3 { other.replicas[index] = replicas[index].swappingKeys }
        if let old = backup.first { other.backup = [old.swappingKeys] }
        for index in writes.indices { other.writes[index].key = 1 - writes[index].key }
        return other
    }

    package var canonicalHash: UInt64 {
        min(UInt64(bitPattern: Int64(hashValue)), UInt64(bitPattern: Int64(swappingKeys.hashValue)))
    }

    // MARK: - Invariants

    /// What must hold in each state.
    package func violation() -> Violation? {
        if hasRestored { return nil }
        if replicas.contains(where: \.hasRenewedID) {
            return Violation(kind: .newIDWithoutReason, words: "no disk went back")
        }
        let writes = writes.filter { !lost.contains($0.name) }
        for (index, write) in writes.enumerated() {
            for other in writes[..<index] where other.version.dot == write.version.dot {
                return Violation(
                    kind: .dotUsedTwice, words: "\(write.name) and \(other.name)")
            }
        }
        for replica in replicas {
            for key in 0..<2 {
                guard let record = replica.records[key] else { continue }
                guard let write = writes.first(where: { $0.name == record.write }),
                    write.version.dot == record.version.dot, write.key == key
                else {
                    return Violation(
                        kind: .dotOfAnother,
                        words: "replica \(replica.index) holds k\(key) under another dot")
                }
            }
            for write in writes where replica.vector.contains(write.version.dot) {
                let dot = write.version.dot
                if unnoted.contains(write.name) { continue }
                // A tombstone that counts as forgotten is as good as none.
                let record = replica.records[Int(write.key)].flatMap { record in
                    record.isDeleted && replica.forgotten.covers(record.version) ? nil : record
                }
                let claim = record?.version.vector ?? replica.forgotten.vector
                if claim.contains(dot) { continue }
                return Violation(
                    kind: .vectorClaimsTooMuch,
                    words: "replica \(replica.index) claims \(dot) of k\(write.key)")
            }
        }
        return nil
    }

    /// What must hold once everybody has exchanged with everybody until nothing moves.
    package func violationAtTheEnd(_ settings: SpecSettings) -> Violation? {
        var end = self
        var rounds = 0
        while true {
            let before = end
            for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
                if let violation = end.exchange(from, to, settings) { return violation }
            }
            end.normalise()
            if end == before { break }
            rounds += 1
            if rounds == 8 {
                return Violation(kind: .neverQuiet, words: "after \(rounds) rounds")
            }
        }
        if end.isUnnoticed { return nil }
        return end.violationAtRest()
    }

    private func violationAtRest() -> Violation? {
        guard Set(replicas.map(\.vector)).count == 1 else {
            return Violation(kind: .unequal, words: "vectors differ")
        }
        for key in 0..<2 {
            let records = replicas.map { replica in
                replica.records[key].flatMap { $0.isDeleted ? nil : $0 }
            }
            let first = records[0]
            for other in records[1...] {
                guard first?.write == other?.write, first?.version.dot == other?.version.dot,
                    first?.version.time == other?.version.time
                else {
                    return Violation(kind: .unequal, words: "k\(key) differs")
                }
            }
            if let violation = violation(of: first, key: key) { return violation }
        }
        return nil
    }

    /// - Parameter record: what stands; nil if it is deleted.
    private func violation(of record: SpecRecord?, key: Int) -> Violation? {
        let all = writes.filter { $0.key == key && !lost.contains($0.name) }
        guard !all.isEmpty else { return nil }
        // Rule: where nothing was forgotten and no disk went back, the latest write stands.
        if !hasForgotten, !hasRestored {
            let latest = all.max { $1.version.isLater(than: $0.version) }
            let stands = record?.write
            guard let latest, latest.isDeleted ? stands == nil : stands == latest.name else {
                return Violation(kind: .lostWrite, words: "k\(key) is not the latest write")
            }
            return nil
        }
        // Rule: else one stands that nobody had overwritten who knew it.
        let overwritten = all.reduce(into: SpecWrites()) { $0.formUnion($1.past) }
        if let record {
            // Rule: what a replica has under an id that it has given up, and does not know to have
            // given away, outlives: others may have forgotten that it was deleted.
            if hasRestored, hasForgotten, record.write.replica == backup.first?.index {
                return nil
            }
            guard !overwritten.contains(record.write) else {
                return Violation(
                    kind: .revived, words: "k\(key) is a write that somebody overwrote")
            }
            return nil
        }
        let last = all.filter { !overwritten.contains($0.name) }
        guard last.contains(where: \.isDeleted) else {
            return Violation(kind: .lostWrite, words: "k\(key) is gone, and nobody deleted it")
        }
        return nil
    }
}
