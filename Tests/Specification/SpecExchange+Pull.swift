extension SpecExchange {
    mutating func pull() throws {
        var isLast = false
        while !isLast {
            let vector = trusted(asker.vector)
            let batons = Knowledge(asker, settings).batons
            let position = pullPosition
            let page = try ask { session in
                try session.checkForks(vector, batons, known: session.peerDisputed)
                session.register(pushed: position)
                session.tell(from: \.responder)
                return session.page(
                    session.responder, since: position,
                    excluding: session.judgesPeer ? SpecVector() : vector)
            }
            largestPage = max(largestPage, page.records.count)
            if noteFork(page.knowledge) { throw Interruption.peerChanged }
            asker.life = max(asker.life, page.knowledge.life)
            if page.isLast {
                rewriteDoubtful(besides: page)
                try settleWrittenMeanwhile()
            }
            try apply(page)
            remote = page.knowledge
            pullPosition = page.through
            isLast = page.isLast
            pagesReceived += 1
        }
        if judgesPeer { judged = (judging, pullPosition) }
        doubted = SpecIDs()
        confirmedKeys = []
    }

    /// Rule: who gives out anything remembers first to whom, and how far that one says it has come.
    mutating func register(pushed since: UInt8 = 0) {
        var checkpoint = responder.checkpoint(asker.id)
        if since > checkpoint.pushedThrough, since <= responder.syncCount,
            responder.disputed.isEmpty
        {
            checkpoint.pushedThrough = since
        }
        responder.peers[asker.id] = checkpoint
    }

    mutating func apply(_ page: Page) throws {
        let before = asker
        var next = self
        var dead: [(key: Int, record: SpecRecord)] = []
        let seen = trusted(asker.vector)
        for (key, record) in page.records {
            next.compare(record, key: key, seen: seen, &dead)
        }
        let joins =
            (page.isLast || mistakes.contains(.joinVectorWithFirstPage))
            && !mistakes.contains(.skipVectorJoin)
        let theirs = trusted(page.knowledge.vector)
        if next.asker.syncCount != before.syncCount || joins {
            let seenThere = page.knowledge.vector.union(seenByPeer).union(remote.vector)
            try check(
                asker, sender: trusted(seenThere),
                page.knowledge.forgotten, isJudged: judgesPeer, settled: settled,
                settledThrough: nil, isLast: joins)
        }
        // What a crash between two batches would leave.
        let isApart =
            mistakes.contains(.checkpointApartFromRecords) && cut?.message == messageCount + 1
        if !isApart { self = next }
        var checkpoint = asker.checkpoint(peer)
        if peerDisputed.isEmpty { checkpoint.pulledThrough = page.through }
        checkpoint.vector.formUnion(page.isLast ? theirs : theirs.removing(doubted))
        let settling = page.isLast ? doubted : SpecIDs()
        var changed = asker
        if settings.hasBatons { changed.take(page.knowledge.batons, settling: settling) }
        let isNews =
            asker.syncCount != before.syncCount
            || checkpoint != asker.peers[peer] ?? SpecCheckpoint()
            || changed.batons != asker.batons || !asker.vector.covers(theirs)
        if isNews {
            asker = changed
            for id in settling { asker.disown(id, isSettled: !joins || theirs[id] > 0) }
            if joins {
                inherit(\.asker, page.knowledge.forgotten)
                asker.see(theirs)
                asker.known.formUnion(page.knowledge.known)
            }
            asker.peers[peer] = checkpoint
        }
        if isApart { return }
        if mistakes.contains(.applyPageTwice) { applyAgain(page) }
        try bury(dead)
    }

    mutating func applyAgain(_ page: Page) {
        for (key, record) in page.records {
            guard let local = asker.records[key], local.version.dot == record.version.dot else {
                continue
            }
            asker.rewrite(
                local, key: key, seen: local.version.vector, time: nil, replaced: local.replaced)
        }
    }

    /// Rule: with the vector of a sender, what it has forgotten is taken over, where it was missed.
    mutating func inherit(
        _ receiver: WritableKeyPath<SpecExchange, SpecReplica>, _ forgotten: SpecForgotten
    ) {
        guard !self[keyPath: receiver].vector.covers(forgotten.vector),
            !mistakes.contains(.nobodyIsLate)
        else { return }
        self[keyPath: receiver].note(forgotten)
    }

    mutating func compare(
        _ incoming: SpecRecord, key: Int, seen: SpecVector,
        _ dead: inout [(key: Int, record: SpecRecord)]
    ) {
        let local = asker.records[key]
        if judgesPeer, let judgement = judgement(incoming, beside: local) {
            switch judgement {
            case .dead: dead.append((key, incoming))
            case .outlives:
                outlive(incoming, key: key, isDead: false, after: asker.forgotten)
            }
            return
        }
        let comparison = SpecComparison(local: local, incoming: incoming, seen: seen, mistakes)
        if let verdict = verdict(on: incoming, beside: local) {
            follow(verdict, incoming, local, comparison, key: key)
            return
        }
        switch comparison {
        case .ignore: break
        case .adopt(let record): adopt(record, for: incoming, key: key)
        case .conflict:
            guard let local else { return }
            // Rule: the policy is last writer wins.
            if case .adopt(let record) = SpecComparison.lastWriter(local, incoming, mistakes) {
                adopt(record, for: incoming, key: key)
            }
        case .renew(let winner): renew(winner, incoming, local, key: key)
        }
    }

    mutating func adopt(_ record: SpecRecord, for incoming: SpecRecord, key: Int) {
        asker.adopt(record, key: key)
        let dot = record.version.dot
        if dot == incoming.version.dot, doubted.contains(dot.id) { confirmedKeys.insert(key) }
    }

    /// Rule: a winner that has to be written anew outlives, if the later of the two has.
    mutating func renew(
        _ winner: SpecRecord, _ incoming: SpecRecord, _ local: SpecRecord?, key: Int
    ) {
        let later = max(incoming.version.time, local?.version.time ?? .zero)
        let vector = incoming.version.vector.union(local?.version.vector ?? SpecVector())
        let replaced = incoming.replaced.union(local?.replaced ?? SpecWrites())
        var next = winner
        next.replaced = replaced
        asker.clock = max(asker.clock, incoming.version.time)
        if winner.version.dot == incoming.version.dot, winner.version.dot == local?.version.dot {
            let time = winner.version.time.next
            asker.rewrite(next, key: key, seen: vector, time: time, replaced: replaced)
            return
        }
        guard later.isOutliving, local != nil else {
            asker.rewrite(next, key: key, seen: vector, time: nil, replaced: replaced)
            return
        }
        next.version = SpecVersion(dot: winner.version.dot, vector: vector, time: later.outlived)
        asker.outlive(next, key: key)
    }
}
