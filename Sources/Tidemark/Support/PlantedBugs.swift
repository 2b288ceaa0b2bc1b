/// Mistakes that a test makes on purpose, one at a time, to learn whether the simulator would find
/// them: a checker that never speaks up proves nothing. Always empty outside of tests, and no
/// mistake is in a release build at all.
///
/// Each mistake is asked about where it would most easily be made: at one site, or at two where
/// there are two ways of doing the same. To add one: a case here, a question at its site, and a
/// line with the seeds that find it in the table of `PlantedBugTests`.
package struct PlantedBugs: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// What a peer has seen is not joined into what this store has seen.
    package static let skipVectorJoin = PlantedBugs(rawValue: 1 << 0)
    /// It is joined with the first page already, before the rest has come.
    package static let joinVectorWithFirstPage = PlantedBugs(rawValue: 1 << 1)
    /// Records leave before they are durable.
    package static let skipSyncBeforeSend = PlantedBugs(rawValue: 1 << 2)
    /// A store that went back in time goes on under its old id.
    package static let reuseDot = PlantedBugs(rawValue: 1 << 3)
    /// A checkpoint is stored before the records that it vouches for, by itself.
    package static let checkpointApartFromRecords = PlantedBugs(rawValue: 1 << 4)
    /// The record that did not fit into a page is taken for sent.
    package static let advanceCursorPastCap = PlantedBugs(rawValue: 1 << 5)
    /// The answering side does not hear that a dataset was deleted or came back.
    package static let ignoreLifecycle = PlantedBugs(rawValue: 1 << 6)
    /// The answering side takes the asker's version of a conflict as it comes.
    package static let applyConflictUnasked = PlantedBugs(rawValue: 1 << 7)
    /// Compaction forgets deletions although there are peers.
    package static let collectTombstonesEarly = PlantedBugs(rawValue: 1 << 8)

    /// Who keeps a part of a dataset claims to have seen all that its peer has.
    package static let claimVectorInPart = PlantedBugs(rawValue: 1 << 9)
    /// A held write counts with the next exchange, whatever its date.
    package static let releaseHeldEarly = PlantedBugs(rawValue: 1 << 10)
    /// A deletion that is to be held because of its date is forgotten, though the vector claims it.
    package static let forgetHeldDeletion = PlantedBugs(rawValue: 1 << 11)
    /// Blocks of another store's segments are taken in without a look at their checksums.
    package static let adoptUnverified = PlantedBugs(rawValue: 1 << 12)
    /// What a page brings is applied once more, as new writes.
    package static let applyPageTwice = PlantedBugs(rawValue: 1 << 13)
    /// A digest that is kept up with the changes does not hear of deletions.
    package static let digestMissesDeletions = PlantedBugs(rawValue: 1 << 14)
    /// With another scope goes what still belongs to the part.
    package static let scopeDropsWhatMatches = PlantedBugs(rawValue: 1 << 15)
    /// The outcome of a conflict is stored without the journal's entry about it.
    package static let outcomeWithoutJournal = PlantedBugs(rawValue: 1 << 16)
    /// A page takes in all there is, however few records it may have.
    package static let unboundedPages = PlantedBugs(rawValue: 1 << 17)

    /// Nobody asks which versions of the past merges have dropped.
    package static let pastUnnoted = PlantedBugs(rawValue: 1 << 18)
    /// A sweep puts a plain deletion in the place of what has expired, under the same dot.
    package static let sweepForgetsExpiry = PlantedBugs(rawValue: 1 << 19)
    /// A bundle is taken in whatever it leaves out.
    package static let bundleUnchecked = PlantedBugs(rawValue: 1 << 20)
    /// A record that is refused is left out without a note.
    package static let refusedUnnoted = PlantedBugs(rawValue: 1 << 21)

    /// All of them by name.
    package static let named: [(name: String, bug: PlantedBugs)] = [
        ("skipVectorJoin", .skipVectorJoin),
        ("joinVectorWithFirstPage", .joinVectorWithFirstPage),
        ("skipSyncBeforeSend", .skipSyncBeforeSend),
        ("reuseDot", .reuseDot),
        ("checkpointApartFromRecords", .checkpointApartFromRecords),
        ("advanceCursorPastCap", .advanceCursorPastCap),
        ("ignoreLifecycle", .ignoreLifecycle),
        ("applyConflictUnasked", .applyConflictUnasked),
        ("collectTombstonesEarly", .collectTombstonesEarly),
        ("claimVectorInPart", .claimVectorInPart),
        ("releaseHeldEarly", .releaseHeldEarly),
        ("forgetHeldDeletion", .forgetHeldDeletion),
        ("adoptUnverified", .adoptUnverified),
        ("applyPageTwice", .applyPageTwice),
        ("digestMissesDeletions", .digestMissesDeletions),
        ("scopeDropsWhatMatches", .scopeDropsWhatMatches),
        ("outcomeWithoutJournal", .outcomeWithoutJournal),
        ("unboundedPages", .unboundedPages),
        ("pastUnnoted", .pastUnnoted),
        ("sweepForgetsExpiry", .sweepForgetsExpiry),
        ("bundleUnchecked", .bundleUnchecked),
        ("refusedUnnoted", .refusedUnnoted),
    ]
}

extension PlantedBugs {
    /// Whether this build has any.
    package static var arePossible: Bool {
        #if PLANTED_BUGS
        true
        #else
        false
        #endif
    }
}

extension StoreOptions {
    /// Whether a mistake is to be made. Never in a release build: `PLANTED_BUGS` is defined in
    /// debug builds alone, and what would follow is not compiled.
    @inline(__always)
    func make(_ mistake: @autoclosure () -> PlantedBugs) -> Bool {
        #if PLANTED_BUGS
        plantedBugs.contains(mistake())
        #else
        false
        #endif
    }
}
