// One exchange of the dataset: the asker pulls and settles, then pushes. Each rule is one of the
// article "Sync protocol", as small as it can be said.

package struct SpecSettings: Hashable, Sendable {
    package var mistakes: SpecMistakes = []
    package var pageRecordsMax = 8
    package var attemptsMax = 5
    /// Whether batons are drawn; without disks that go back nobody looks at them.
    package var hasBatons = false
    /// Whether deletions are forgotten with age, or only once all peers have them.
    package var forgetsByAge = true

    package init() {}
}

/// Where an exchange breaks off: with the loss of the request of that number, or of its answer.
package struct SpecCut: Hashable, Sendable {
    package var message: Int
    package var losesAnswer: Bool

    package init(message: Int, losesAnswer: Bool) {
        self.message = message
        self.losesAnswer = losesAnswer
    }
}

package struct SpecExchange {
    package enum Outcome: Hashable, Sendable { case complete, cut, contended }

    /// A write of the responder's in the middle of an exchange.
    package struct Crossing {
        var message: Int
        var key: Int
        var name: SpecWriteName
        /// All to the key until then.
        var writes: SpecWrites
    }

    enum Interruption: Error { case cut, peerChanged, late }

    /// What one side says of itself.
    struct Knowledge {
        var vector: SpecVector
        var syncCount: UInt8
        var forgotten: SpecForgotten
        var life: Int
        var batons: Four<SpecBaton?>
        var known: SpecWrites

        init(_ replica: SpecReplica, _ settings: SpecSettings) {
            vector = replica.vector
            syncCount = replica.syncCount
            forgotten = replica.forgotten
            life = replica.life
            batons = settings.hasBatons ? replica.shownBatons : Four(nil)
            known = replica.known
        }
    }

    struct Greeting {
        var replica: Int
        var knowledge: Knowledge
        var pulledThrough: UInt8
        var pushedThrough: UInt8
        var disputed: SpecIDs
    }

    struct Page {
        var records: [(key: Int, record: SpecRecord)]
        var through: UInt8
        var isLast: Bool
        var knowledge: Knowledge
    }

    package internal(set) var asker: SpecReplica
    package internal(set) var responder: SpecReplica
    package internal(set) var messageCount = 0
    package internal(set) var pagesReceived = 0
    package internal(set) var pagesSent = 0
    /// The greatest page that was sent.
    package internal(set) var largestPage = 0
    let settings: SpecSettings
    let cut: SpecCut?
    let crossing: Crossing?
    /// What the crossing write became; nil if there was no such message.
    var crossed: SpecVersion?
    var crossedPast = SpecWrites()

    var peer = -1
    var remote: Knowledge
    var pullPosition: UInt8 = 0
    var pushPosition: UInt8 = 0
    var acknowledged: UInt8 = 0
    var doubted = SpecIDs()
    var peerDisputed = SpecIDs()
    var contestedByPeer = SpecIDs()
    var knownToPeer = SpecVector()
    var knownFromPeer: UInt8 = 0
    var confirmedKeys: Set<Int> = []
    var hasFreshStart = false
    var settled = SpecVector()
    /// In the asker's order of change: what comes later was not asked about.
    var settledThrough: UInt8 = 0
    var judgesPeer = false
    var judging = SpecVector()
    var judged = (forgotten: SpecVector(), through: UInt8(0))
    var seenByPeer = SpecVector()

    package init(
        _ asker: SpecReplica, _ responder: SpecReplica, _ settings: SpecSettings,
        cut: SpecCut? = nil, crossing: Crossing? = nil
    ) {
        self.asker = asker
        self.responder = responder
        self.settings = settings
        self.cut = cut
        self.crossing = crossing
        remote = Knowledge(responder, settings)
    }

    var mistakes: SpecMistakes { settings.mistakes }
    var isForked: Bool { !doubted.isEmpty || !peerDisputed.isEmpty }

    package mutating func run() -> Outcome {
        for _ in 0..<settings.attemptsMax {
            do {
                if try attempt() { return .complete }
            } catch Interruption.cut {
                return .cut
            } catch {
                // The peer has changed, or one of the two is late: it begins again.
            }
        }
        return .contended
    }

    // MARK: - Messages

    mutating func ask<Answer>(
        _ body: (inout SpecExchange) throws -> Answer
    ) throws -> Answer {
        messageCount += 1
        let isCut = cut?.message == messageCount
        if isCut, cut?.losesAnswer == false { throw Interruption.cut }
        if let crossing, crossing.message == messageCount {
            crossed = responder.write(
                crossing.name, key: crossing.key, isDeleted: false, of: crossing.writes, mistakes)
            crossedPast = responder.records[crossing.key]?.replaced ?? SpecWrites()
        }
        let answer = try body(&self)
        if isCut { throw Interruption.cut }
        return answer
    }

    mutating func tell(from replica: WritableKeyPath<SpecExchange, SpecReplica>) {
        if settings.hasBatons { self[keyPath: replica].drawBatons() }
    }

    /// Rule: a responder that is shown a sign of a fork, or disputes an id that the asker does not
    /// name, is another one from then on.
    mutating func checkForks(
        _ vector: SpecVector, _ batons: Four<SpecBaton?>, known: SpecIDs
    ) throws {
        guard responder.id == peer else { throw Interruption.peerChanged }
        guard settings.hasBatons else { return }
        if responder.dispute(batons, vector, mistakes) { throw Interruption.peerChanged }
        guard known.isSuperset(of: responder.disputed) else { throw Interruption.peerChanged }
    }

    // MARK: - Attempt

    mutating func attempt() throws -> Bool {
        var greeting = try greet()
        if noteFork(greeting.knowledge) { greeting = try greet() }
        peerDisputed = greeting.disputed
        remote = greeting.knowledge
        seenByPeer = remote.vector
        takePositions(greeting)
        judge()
        asker.life = max(asker.life, remote.life)
        // Rule: nothing is pulled where the peer has neither changed nor seen anything new.
        if remote.syncCount > pullPosition || isForked || !asker.vector.covers(remote.vector) {
            try startAfresh()
            judge()
            try pull()
        }
        return try push()
    }

    mutating func greet() throws -> Greeting {
        let greeting = try ask { session in
            let checkpoint = session.responder.checkpoint(session.asker.id)
            return Greeting(
                replica: session.responder.id,
                knowledge: Knowledge(session.responder, session.settings),
                pulledThrough: checkpoint.pulledThrough,
                pushedThrough: checkpoint.pushedThrough,
                disputed: session.responder.disputed)
        }
        if greeting.replica != peer {
            confirmedKeys = []
            settled = SpecVector()
            hasFreshStart = false
            judged = (SpecVector(), 0)
        }
        peer = greeting.replica
        return greeting
    }

    mutating func noteFork(_ theirs: Knowledge) -> Bool {
        guard settings.hasBatons else { return false }
        _ = asker.dispute(theirs.batons, theirs.vector, mistakes)
        guard asker.disputed != doubted else { return false }
        doubted = asker.disputed
        confirmedKeys = []
        return true
    }

    /// Rule: positions count as far as both sides remember them, and not at all while an id is
    /// disputed.
    mutating func takePositions(_ greeting: Greeting) {
        let checkpoint = asker.checkpoint(peer)
        acknowledged = greeting.pushedThrough
        var reached = checkpoint.pulledThrough
        contestedByPeer = peerDisputed
        for id in peerDisputed where greeting.knowledge.batons[id] == nil {
            reached = max(reached, asker.checkpoint(id).pulledThrough)
            contestedByPeer.remove(id)
        }
        knownToPeer = checkpoint.vector
        knownFromPeer = min(reached, acknowledged)
        pullPosition = min(checkpoint.pulledThrough, acknowledged)
        pushPosition = min(checkpoint.pushedThrough, greeting.pulledThrough)
        if pullPosition > greeting.knowledge.syncCount { pullPosition = 0 }
        if pushPosition > asker.syncCount { pushPosition = 0 }
        if isForked { (pullPosition, pushPosition) = (0, 0) }
    }

    func trusted(_ vector: SpecVector) -> SpecVector { vector.removing(peerDisputed) }

    // MARK: - Pages

    func inOrder(_ replica: SpecReplica) -> [(key: Int, record: SpecRecord)] {
        var all: [(key: Int, record: SpecRecord)] = []
        for key in 0..<2 {
            if let record = replica.records[key] { all.append((key, record)) }
        }
        if all.count == 2, all[0].record.count > all[1].record.count { all.swapAt(0, 1) }
        return all
    }

    /// Rule: a page has the records after a position, in the order of change, but for what the
    /// other side's vector covers and for deletions that count as forgotten.
    func page(
        _ replica: SpecReplica, since: UInt8, excluding: SpecVector
    ) -> Page {
        var page = Page(
            records: [], through: since, isLast: false, knowledge: Knowledge(replica, settings))
        for (key, record) in inOrder(replica) where record.count > since {
            let isKnown = excluding.covers(record.version.vector)
            let isForgotten = record.isDeleted && replica.forgotten.covers(record.version)
            if !isKnown, !isForgotten {
                if page.records.count == settings.pageRecordsMax,
                    !mistakes.contains(.unboundedPages)
                {
                    if mistakes.contains(.advanceCursorPastCap) { page.through = record.count }
                    return page
                }
                page.records.append((key, record))
            }
            page.through = record.count
        }
        page.through = max(since, replica.syncCount)
        page.isLast = true
        return page
    }
}
