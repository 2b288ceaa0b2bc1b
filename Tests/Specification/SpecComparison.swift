/// What a version that arrives comes to beside the one that is here.
package enum SpecComparison: Hashable, Sendable {
    /// What is here says all of it.
    case ignore
    /// The write of the record is stored under that version.
    case adopt(SpecRecord)
    /// Neither descends from the other and they differ: the policy decides.
    case conflict
    /// The record wins by descent, and has to be written anew.
    case renew(SpecRecord)

    package init(
        local: SpecRecord?, incoming: SpecRecord, seen: SpecVector, _ mistakes: SpecMistakes = []
    ) {
        // Rule: what the dataset's vector covers, and is not here, was superseded or is dead.
        let isSeen = seen.covers(incoming.version.vector)
        guard let local else {
            self = isSeen ? .ignore : .adopt(incoming)
            return
        }
        let (ours, theirs) = (local.version, incoming.version)
        if theirs.isInDispute(with: ours) {
            self = .disputed(local, incoming, mistakes)
            return
        }
        switch theirs.relation(to: ours) {
        // Rule: a descendant that may not take the place of its ancestor is written anew.
        case .descendant where !theirs.supersedesAsItIs(ours): self = .renew(incoming)
        case .ancestor where !ours.supersedesAsItIs(theirs): self = .renew(local)
        // Rule: a descendant takes the place of its ancestor, with what both had seen.
        case .descendant: self = .join(incoming, over: local, incoming, mistakes)
        case .ancestor: self = .join(local, over: local, incoming, mistakes)
        // Rule: a write that was buried under its own dot, and comes with more, has its deletion
        // written anew.
        case .same
        where local.isDeleted && !incoming.isDeleted && theirs.time == ours.time
            && !ours.vector.covers(theirs.vector):
            self = .renew(local)
        // Rule: of one dot with two times the later stays; the vectors are united.
        case .same:
            let winner = theirs.time > ours.time ? incoming : local
            self = .join(winner, over: local, incoming, mistakes)
        // Rule: what is concurrent and was seen has lost already.
        case .concurrent where isSeen: self = .ignore
        // Rule: of equal values the later version stays.
        case .concurrent where incoming.hasValue(of: local):
            self = .lastWriter(local, incoming, mistakes)
        case .concurrent: self = .conflict
        }
    }

    /// Rule: of two versions in dispute the one stays that has seen all of the other; if there is
    /// none, the record is deleted under the dot of the earlier one.
    private static func disputed(
        _ local: SpecRecord, _ incoming: SpecRecord, _ mistakes: SpecMistakes
    ) -> SpecComparison {
        let (ours, theirs) = (local.version.vector, incoming.version.vector)
        if ours != theirs, theirs.covers(ours) {
            return join(incoming, over: local, incoming, mistakes)
        }
        if ours != theirs, ours.covers(theirs) { return .ignore }
        var earlier = incoming.version.isLater(than: local.version) ? local : incoming
        earlier.isDeleted = true
        return .renew(earlier)
    }

    /// Rule: the last writer stays under its own dot, with what both had seen.
    package static func lastWriter(
        _ local: SpecRecord, _ incoming: SpecRecord, _ mistakes: SpecMistakes
    ) -> SpecComparison {
        var isTheirs = incoming.version.isLater(than: local.version)
        if mistakes.contains(.firstWriterWins) { isTheirs.toggle() }
        return join(isTheirs ? incoming : local, over: local, incoming, mistakes)
    }

    private static func join(
        _ winner: SpecRecord, over local: SpecRecord, _ incoming: SpecRecord,
        _ mistakes: SpecMistakes
    ) -> SpecComparison {
        var joined = winner
        if !mistakes.contains(.winnerForgetsTheLoser) {
            joined.version.vector = local.version.vector.union(incoming.version.vector)
        }
        joined.replaced = local.replaced.union(incoming.replaced)
        return joined.version == local.version ? .ignore : .adopt(joined)
    }
}

/// Rules that are wrong on purpose, one at a time, to learn whether the exploration would find
/// them.
package struct SpecMistakes: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    // Those that can be planted in the product, too, under their names there.
    package static let skipVectorJoin = SpecMistakes(rawValue: 1 << 0)
    package static let joinVectorWithFirstPage = SpecMistakes(rawValue: 1 << 1)
    package static let reuseDot = SpecMistakes(rawValue: 1 << 2)
    package static let checkpointApartFromRecords = SpecMistakes(rawValue: 1 << 3)
    package static let advanceCursorPastCap = SpecMistakes(rawValue: 1 << 4)
    package static let applyConflictUnasked = SpecMistakes(rawValue: 1 << 5)
    package static let collectTombstonesEarly = SpecMistakes(rawValue: 1 << 6)
    package static let applyPageTwice = SpecMistakes(rawValue: 1 << 7)
    package static let unboundedPages = SpecMistakes(rawValue: 1 << 8)
    package static let skipSyncBeforeSend = SpecMistakes(rawValue: 1 << 9)

    // Others.
    /// The last writer does not take over what the other one had seen.
    package static let winnerForgetsTheLoser = SpecMistakes(rawValue: 1 << 17)
    /// The earlier of two concurrent versions stays.
    package static let firstWriterWins = SpecMistakes(rawValue: 1 << 18)
    /// Nobody asks whether either side lacks forgotten deletions.
    package static let nobodyIsLate = SpecMistakes(rawValue: 1 << 19)
    /// What a late side has seen and the other one lacks is kept.
    package static let nothingIsBuried = SpecMistakes(rawValue: 1 << 21)
    /// Who went back takes a new id and goes on believing what it has under the old one.
    package static let forkedDisputesNothing = SpecMistakes(rawValue: 1 << 22)
    /// A write does not look at the record that it replaces in the middle of an exchange.
    package static let writesDescendFromTheVectorAlone = SpecMistakes(rawValue: 1 << 23)

    package static let named: [(name: String, mistake: SpecMistakes)] = [
        ("skipVectorJoin", .skipVectorJoin),
        ("joinVectorWithFirstPage", .joinVectorWithFirstPage),
        ("reuseDot", .reuseDot),
        ("checkpointApartFromRecords", .checkpointApartFromRecords),
        ("advanceCursorPastCap", .advanceCursorPastCap),
        ("applyConflictUnasked", .applyConflictUnasked),
        ("collectTombstonesEarly", .collectTombstonesEarly),
        ("applyPageTwice", .applyPageTwice),
        ("unboundedPages", .unboundedPages),
        ("skipSyncBeforeSend", .skipSyncBeforeSend),
        ("winnerForgetsTheLoser", .winnerForgetsTheLoser),
        ("firstWriterWins", .firstWriterWins),
        ("nobodyIsLate", .nobodyIsLate),
        ("nothingIsBuried", .nothingIsBuried),
        ("forkedDisputesNothing", .forkedDisputesNothing),
        ("writesDescendFromTheVectorAlone", .writesDescendFromTheVectorAlone),
    ]
}
