// The order of an exchange of one dataset, by itself: no store, no peer, no waiting. `SyncSession`
// carries out one step after the other and says what came of each.
//
//   whole   begin ▶ greet ▶ agree ▶ admit ▶ lifecycle ▶ bootstrap ▶ fresh start ▶ reconcile ▶ sweep
//           ▶ pull ▶ settle ▶ merge ▶ push ▶ compare ▶ push what was overlooked ▶ retire ▶ end
//   part    begin ▶ greet ▶ agree ▶ lifecycle ▶ admit ▶ look up ▶ pull ▶ settle ▶ push ▶ end
//   part, from a part   ... ▶ agree ▶ lifecycle ▶ pull ▶ settle ▶ end
//
// Steps are passed over for which there is no reason: of a peer that never heard of the dataset
// nothing is pulled, and nothing of one that has no news. From any step an exchange may begin
// again, as often as there are attempts: when the peer has moved on, has another id, or one of the
// two is late. What is cut short ends in order, with how far it has come told to the peer.
//
// Invariants, which a test holds over random events:
// - Nothing is pushed in an attempt before everything was pulled, or it is known that nothing is to
//   be.
// - Merged datasets are retired after everything was pushed, and never by an exchange of a part.
// - There are no more attempts than there may be, and each comes to an end.

struct ExchangeMachine {
    enum Step: Hashable, Sendable {
        /// See whether all of the dataset is kept here or a part.
        case begin
        /// Ask how it stands at the peer, unless that was told just now.
        case greet(known: DatasetGreeting?)
        /// Take note of ids in doubt, of positions, and of who is late.
        case agree(DatasetGreeting?)
        /// Let in what was held and is due.
        case admit
        /// Bring the life of the dataset on both sides to the same.
        case lifecycle
        /// Of a part: ask by key about what others brought.
        case lookUp
        /// Take over what lies in sealed segments.
        case bootstrap
        /// If this side lacks deletions that the peer has forgotten.
        case startAfresh
        /// Find what differs by sums over ranges of keys.
        case reconcile
        /// Take everything in the order of keys, where the order of change is no help.
        case sweep
        case pull
        /// Look once more at what was refused or waits; whether all has come that there is.
        case settle(hasAll: Bool)
        /// Nothing can be compared: what is in doubt here is written anew.
        case settleAlone
        /// Ask about datasets that are to go into this one.
        case merge
        case push
        /// Where both have seen the same: see whether they have the same.
        case compare
        /// What was found by that.
        case pushOverlooked
        /// Hand over what became of merged datasets.
        case retire
        /// Tell the peer how far this side has come, because nothing is pushed.
        case acknowledge
        case end
        /// No attempt is left.
        case giveUp
    }

    enum Event: Hashable, Sendable {
        case done
        /// Only a part is kept here.
        case isPart
        /// What the peer says of the dataset; nil if it never heard of it.
        case greeted(DatasetGreeting?)
        /// The peer keeps a part, too: it tells what it has, and takes nothing.
        case isTakingOnly
        /// This side learnt that its id is in doubt: what the peer said of it counts no more.
        case forked
        /// There is no reason for what comes next.
        case nothingNew
        /// No more is to travel in this exchange, or nothing more may.
        case cutShort
        /// What kept a pull from counting is gone.
        case pullAgain
        /// Both have the same.
        case equal
        /// The peer has moved on, or is another one: begin again.
        case outdated
    }

    private(set) var step = Step.begin
    /// With the one under way.
    private(set) var attempts = 1
    private let attemptsMax: Int
    /// Told before the exchange began, for the first attempt.
    private let known: DatasetGreeting?
    private var isPart = false
    private var isPresent = false
    private var isTakingOnly = false
    /// Whether this attempt found that an id is in doubt.
    private var isForked = false
    /// Whether this attempt has pulled twice.
    private var isPulledAgain = false

    init(attemptsMax: Int, known: DatasetGreeting?) {
        self.attemptsMax = attemptsMax
        self.known = known
    }

    /// What is to be done next.
    mutating func advance(_ event: Event) {
        step = event == .outdated ? next() : next(after: event)
    }

    /// The next attempt.
    private mutating func next() -> Step {
        guard attempts < attemptsMax else { return .giveUp }
        attempts += 1
        return .begin
    }

    private mutating func next(after event: Event) -> Step {
        switch (step, event) {
        case (.end, _), (.giveUp, _):
            return step
        case (.acknowledge, _):
            return .end
        case (.greet, .cutShort):
            return .end
        case (.pull, _):
            return .settle(hasAll: event != .cutShort)
        case (.settle(hasAll: false), _):
            return .acknowledge
        case (.settle, .pullAgain):
            guard !isPulledAgain else { return next() }
            isPulledAgain = true
            return .pull
        case (_, .cutShort):
            return .acknowledge
        case (.begin, _):
            (isPart, isForked, isTakingOnly) = (event == .isPart, false, false)
            isPulledAgain = false
            return .greet(known: attempts == 1 ? known : nil)
        case (.greet, .greeted(let greeting)):
            isPresent = greeting?.knowledge != nil
            return .agree(greeting)
        case (.agree, .forked):
            guard !isForked else { return next() }
            isForked = true
            return .greet(known: nil)
        case (.agree, .isTakingOnly) where isPart:
            isTakingOnly = true
            return .lifecycle
        default:
            return isPart ? nextOfPart(after: event) : nextOfWhole(after: event)
        }
    }

    private func nextOfWhole(after event: Event) -> Step {
        switch step {
        case .agree: return .admit
        case .admit: return isPresent ? .lifecycle : .settleAlone
        case .lifecycle: return event == .nothingNew ? .merge : .bootstrap
        case .bootstrap: return .startAfresh
        case .startAfresh: return .reconcile
        case .reconcile: return .sweep
        case .sweep: return .pull
        case .settle, .settleAlone: return .merge
        case .merge: return .push
        case .push: return .compare
        case .compare: return event == .equal ? .retire : .pushOverlooked
        case .pushOverlooked: return .retire
        case .retire: return .end
        case .begin, .greet, .lookUp, .pull, .acknowledge, .end, .giveUp: return .end
        }
    }

    private func nextOfPart(after event: Event) -> Step {
        switch step {
        case .lifecycle where isTakingOnly: .pull
        case .settle where isTakingOnly: .end
        case .agree: isPresent ? .lifecycle : .admit
        case .lifecycle: .admit
        case .admit: isPresent ? .lookUp : .push
        case .lookUp: event == .nothingNew ? .push : .pull
        case .settle: .push
        default: .end
        }
    }
}
