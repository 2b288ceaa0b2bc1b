// What becomes of records under an id under which two stores wrote.

extension SpecExchange {
    enum ForkVerdict {
        case confirmed
        case superseded
        case rewrite(SpecRecord, seen: SpecVector)
        case settle(seen: SpecVector)
    }

    func stripped(_ record: SpecRecord) -> SpecVector {
        let isDoubted = doubted.contains(record.version.dot.id)
        return record.version.vector.removing(isDoubted ? doubted : peerDisputed)
    }

    /// Rule: what lies on the forked side under a disputed dot is confirmed if the other side has
    /// the very same write, superseded if that has a descendant which is believed to be one,
    /// written anew if that has nothing or the same value, and else in conflict.
    func verdict(
        on incoming: SpecRecord, beside local: SpecRecord?
    ) -> ForkVerdict? {
        let isLocal = local.map { doubted.contains($0.version.dot.id) } ?? false
        guard isLocal || peerDisputed.contains(incoming.version.dot.id) else { return nil }
        guard let local else { return .rewrite(incoming, seen: stripped(incoming)) }
        let (doubtful, certain) = isLocal ? (local, incoming) : (incoming, local)
        let both = stripped(doubtful).union(certain.version.vector)
        switch certain.version.relation(to: doubtful.version) {
        case .same:
            let isSame =
                certain.version.time == doubtful.version.time && certain.hasValue(of: doubtful)
            return isSame ? .confirmed : .settle(seen: both)
        case .descendant where isBelieved(certain, toDescendFrom: doubtful, isLocal: isLocal):
            return isLocal ? .superseded : .confirmed
        case .ancestor, .descendant, .concurrent:
            guard certain.hasValue(of: doubtful) else { return .settle(seen: both) }
            let later = certain.version.time > doubtful.version.time ? certain : doubtful
            return .rewrite(later, seen: both)
        }
    }

    func isBelieved(
        _ certain: SpecRecord, toDescendFrom doubtful: SpecRecord, isLocal: Bool
    ) -> Bool {
        if certain.hasValue(of: doubtful) { return true }
        if isLocal ? peerHad(doubtful.version.dot) : weHad(doubtful) { return true }
        return certain.version.time >= doubtful.version.time
    }

    func peerHad(_ dot: SpecDot) -> Bool {
        knownToPeer.contains(dot)
            && (asker.ownIDs.contains(dot.id) || !peerDisputed.contains(dot.id))
    }

    func weHad(_ doubtful: SpecRecord) -> Bool {
        let id = doubtful.version.dot.id
        return doubtful.count <= knownFromPeer
            && !(contestedByPeer.contains(id) && doubted.contains(id))
    }

    mutating func follow(
        _ verdict: ForkVerdict, _ incoming: SpecRecord, _ local: SpecRecord?,
        _ comparison: SpecComparison, key: Int
    ) {
        let replaced = incoming.replaced.union(local?.replaced ?? SpecWrites())
        switch (verdict, local) {
        case (.confirmed, _):
            confirmedKeys.insert(key)
        case (.rewrite(let record, let seen), _):
            asker.rewrite(
                record, key: key, seen: seen, time: record.version.time.next, replaced: replaced)
        case (.settle(let seen), .some(let local)):
            var winner = incoming.version.isLater(than: local.version) ? incoming : local
            // A new write, later than both.
            winner.version.time = incoming.version.time
            asker.rewrite(winner, key: key, seen: seen, time: nil, replaced: replaced)
        case (.superseded, _), (.settle, .none):
            switch comparison {
            case .renew(let winner): renew(winner, incoming, local, key: key)
            case .adopt(let record): adopt(record, for: incoming, key: key)
            case .ignore, .conflict: break
            }
        }
    }

    /// Rule: before the last page is applied, what the peer has nothing of is written anew, in the
    /// order of the keys.
    mutating func rewriteDoubtful(besides page: Page) {
        guard !doubted.isEmpty else { return }
        let keys = confirmedKeys.union(page.records.map(\.key))
        for key in 0..<2 {
            guard let record = asker.records[key], doubted.contains(record.version.dot.id),
                !keys.contains(key)
            else { continue }
            asker.rewrite(
                record, key: key, seen: stripped(record), time: record.version.time.next,
                replaced: record.replaced)
        }
    }
}
