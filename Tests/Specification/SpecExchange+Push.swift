extension SpecExchange {
    /// - Returns: false if the peer has what must be pulled first.
    mutating func push() throws -> Bool {
        while true {
            let changes = page(asker, since: pushPosition, excluding: trusted(remote.vector))
            let pulled = asker.checkpoint(peer).pulledThrough
            let isNews =
                pulled > acknowledged || !peerDisputed.isEmpty || !changes.records.isEmpty
                || !changes.isLast || !remote.vector.covers(changes.knowledge.vector)
                || remote.life < asker.life
            guard isNews else {
                // Rule: what the peer says of itself is remembered.
                var checkpoint = asker.checkpoint(peer)
                if !checkpoint.vector.covers(remote.vector) {
                    checkpoint.vector.formUnion(remote.vector)
                    asker.peers[peer] = checkpoint
                }
                return true
            }
            largestPage = max(largestPage, changes.records.count)
            asker.peers[peer] = asker.checkpoint(peer)
            tell(from: \.asker)
            var sent = changes
            sent.knowledge.batons = Knowledge(asker, settings).batons
            let (since, disputed) = (pushPosition, peerDisputed)
            let looked = disputed.isEmpty ? pulled : max(pulled, judged.through)
            let answer = try ask { session in
                try session.take(sent, since: since, acknowledged: looked, disputed: disputed)
            }
            remote = answer.knowledge
            pagesSent += 1
            switch answer.outcome {
            case .accepted:
                pushPosition = changes.through
                acknowledged = remember(changes, answer, pulled: pulled)
                guard changes.isLast else { continue }
                peerDisputed = SpecIDs()
                return true
            case .conflicts, .late: return false
            case .gap(let count): pushPosition = count
            }
        }
    }

    struct Answer {
        enum Outcome { case accepted, conflicts, late, gap(UInt8) }

        var outcome: Outcome
        var appliedAfter: UInt8?
        var knowledge: Knowledge
    }

    mutating func remember(_ page: Page, _ answer: Answer, pulled: UInt8) -> UInt8 {
        var checkpoint = asker.checkpoint(peer)
        var reached = pulled
        if let appliedAfter = answer.appliedAfter, appliedAfter <= pulled {
            reached = max(pulled, answer.knowledge.syncCount)
            checkpoint.pulledThrough = max(checkpoint.pulledThrough, reached)
        }
        checkpoint.pushedThrough = page.through
        checkpoint.vector.formUnion(answer.knowledge.vector)
        asker.peers[peer] = checkpoint
        return reached
    }

    // MARK: - The answering side

    /// Rule: the responder takes what is no conflict, settles nothing, and claims the asker's
    /// vector with the last page alone.
    mutating func take(
        _ page: Page, since: UInt8, acknowledged: UInt8, disputed known: SpecIDs
    ) throws -> Answer {
        try checkForks(page.knowledge.vector, page.knowledge.batons, known: known)
        let checkpoint = responder.checkpoint(asker.id)
        guard since <= checkpoint.pulledThrough else {
            return Answer(
                outcome: .gap(checkpoint.pulledThrough), knowledge: Knowledge(responder, settings))
        }
        responder.life = max(responder.life, page.knowledge.life)
        let before = responder
        let disputed = responder.disputed
        var (next, conflicts, hasRenewed) = compared(page, disputed)
        let stored = next.syncCount - before.syncCount
        let joins =
            conflicts.isEmpty && (page.isLast || mistakes.contains(.joinVectorWithFirstPage))
            && !mistakes.contains(.skipVectorJoin)
        for key in conflicts {
            // Rule: what lies here under a disputed id and is in conflict is written anew.
            guard let local = responder.records[key], disputed.contains(local.version.dot.id)
            else { continue }
            next.rewrite(
                local, key: key, seen: local.version.vector.removing(disputed),
                time: local.version.time.next, replaced: local.replaced)
            hasRenewed = true
        }
        if stored > 0 || hasRenewed || joins {
            do {
                try check(
                    responder, sender: page.knowledge.vector, page.knowledge.forgotten,
                    isJudged: false, settled: judged.forgotten, settledThrough: acknowledged,
                    isLast: joins)
            } catch {
                return Answer(outcome: .late, knowledge: Knowledge(responder, settings))
            }
        }
        responder = next
        guard conflicts.isEmpty else {
            if settings.hasBatons { responder.take(page.knowledge.batons, settling: SpecIDs()) }
            return Answer(outcome: .conflicts, knowledge: Knowledge(responder, settings))
        }
        accept(page, checkpoint, acknowledged, before: before, joins: joins)
        return Answer(
            outcome: .accepted, appliedAfter: before.syncCount,
            knowledge: Knowledge(responder, settings))
    }

    /// The responder with what it takes of a page, the keys of conflicts, and whether it wrote
    /// anything anew.
    private func compared(
        _ page: Page, _ disputed: SpecIDs
    ) -> (responder: SpecReplica, conflicts: [Int], hasRenewed: Bool) {
        var next = responder
        var hasRenewed = false
        var conflicts: [Int] = []
        for (key, record) in page.records {
            let local = responder.records[key]
            switch SpecComparison(
                local: local, incoming: record, seen: responder.vector, mistakes)
            {
            case .ignore: break
            case .adopt(var joined):
                joined.version = certain(joined.version, of: record, over: local, disputed)
                next.adopt(joined, key: key)
            case .conflict where mistakes.contains(.applyConflictUnasked):
                next.adopt(record, key: key)
            case .renew(let local) where local.version.dot == record.version.dot:
                next.rewrite(
                    local, key: key, seen: record.version.vector, time: local.version.time.next,
                    replaced: local.replaced.union(record.replaced))
                hasRenewed = true
            case .conflict, .renew: conflicts.append(key)
            }
        }
        return (next, conflicts, hasRenewed)
    }

    /// Notes what a page without conflicts says beside its records.
    private mutating func accept(
        _ page: Page, _ checkpoint: SpecCheckpoint, _ acknowledged: UInt8, before: SpecReplica,
        joins: Bool
    ) {
        let disputed = before.disputed
        var reached = checkpoint
        reached.pulledThrough = page.through
        let unsettled = page.isLast ? SpecIDs() : disputed
        reached.vector.formUnion(page.knowledge.vector.removing(unsettled))
        if unsettled.isEmpty, acknowledged <= before.syncCount {
            reached.pushedThrough = max(reached.pushedThrough, acknowledged)
        }
        if page.isLast {
            for id in disputed {
                responder.disown(id, isSettled: !joins || page.knowledge.vector[id] > 0)
            }
        }
        if joins {
            inherit(\.responder, page.knowledge.forgotten)
            responder.see(page.knowledge.vector)
            responder.known.formUnion(page.knowledge.known)
        }
        if settings.hasBatons {
            responder.take(
                page.knowledge.batons, settling: page.isLast ? disputed : SpecIDs())
        }
        // Rule: what was applied since came from the asker, who has no need of it.
        if before.syncCount <= reached.pushedThrough {
            reached.pushedThrough = responder.syncCount
        }
        responder.peers[asker.id] = reached
    }

    /// Rule: what takes the place of a version under a disputed dot does not descend from that.
    func certain(
        _ joined: SpecVersion, of incoming: SpecRecord, over local: SpecRecord?,
        _ disputed: SpecIDs
    ) -> SpecVersion {
        guard let local, disputed.contains(local.version.dot.id),
            joined.dot == incoming.version.dot,
            !incoming.version.vector.contains(local.version.dot)
        else { return joined }
        return SpecVersion(
            dot: joined.dot,
            vector: incoming.version.vector.union(local.version.vector.removing(disputed)),
            time: joined.time)
    }
}
