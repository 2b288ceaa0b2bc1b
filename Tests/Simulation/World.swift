import TestSupport
import Tidemark
import TidemarkSync

// A run of several replicas of which every event follows from the settings and the schedule.
//
// One thread does everything: it takes the next step of the schedule, runs the tasks that are
// ready, and lets time pass to the next event. The stores run inline, their disks and clocks are
// simulated, and exchanges are tasks on an executor that this thread drives. So a failed run is
// repeated by its seed, step by step and byte by byte.
//
// When the schedule is over all trouble ends, everything is exchanged until nothing moves, and
// what the replicas then hold is compared with each other and with what was acknowledged.

/// What came of a run.
package struct SimulationOutcome: Sendable {
    package let violation: Violation?
    package let trace: Trace
    package let exchangeCount: Int
    package let failedExchangeCount: Int
    package let conflictCount: Int
    package let crashCount: Int
    package let writeCount: Int
    /// Bundles that were taken in.
    package let importCount: Int
    /// Moments of the past that were read again.
    package let pastReadCount: Int
    package let virtualMilliseconds: UInt64
}

package final class World: @unchecked Sendable {
    // Unchecked: the thread that calls `run` is the only one to touch it. That nothing leaks to
    // another one is checked at the end (`Violation.Kind.leak`).
    let settings: SimulationSettings
    let time = VirtualTime()
    let executor = OneThreadExecutor()
    var replicas: [SimulatedReplica] = []
    var model = WriteModel()
    private(set) var violation: Violation?
    private(set) var trace: Trace
    private var cuts: Set<[Int]> = []
    var activeExchanges = 0
    var exchangeCount = 0
    var failedExchangeCount = 0
    var conflictCount = 0
    var crashCount = 0
    var restoreCount = 0
    var killCount: UInt64 = 0
    /// Trouble has ended, and everything is exchanged until nothing moves.
    var isHealing = false
    /// What handlers decided, by replica, that has not been looked for in the journal.
    var decisions: [Int: [MadeDecision]] = [:]
    /// Where bundles lie; nil as long as there are none.
    var bundles: TemporaryDirectory?
    var bundleCount = 0
    var importCount = 0
    var pastReadCount = 0
    /// By when all has expired that is to expire in this run, in milliseconds since 1970.
    var lastExpiry: UInt64 = 0
    /// Whether all of the large dataset was written, for good.
    var hasLarge = false
    private var eventCount = 0
    /// Events after which a run counts as endless.
    private static let eventsMax = 2_000_000
    /// The outcome stands; what still goes on is led to its end.
    private(set) var isOver = false

    /// What stands in each replica's records as the trace last said; nil if it does not say.
    private var shownRecords: [[ModelKey: String]]?

    private init(_ settings: SimulationSettings, keepsTrace: Bool, showsRecords: Bool) {
        self.settings = settings
        trace = Trace(keepsLines: keepsTrace)
        var random = SeededGenerator(Seed(settings.seed.rawValue ^ 0x5EED))
        replicas = (0..<settings.replicaCount).map {
            SimulatedReplica($0, settings, random: &random)
        }
        model.hasFarClock = settings.traits.contains(.clocks)
        if showsRecords { shownRecords = replicas.map { _ in [:] } }
    }

    /// Runs a schedule to its end, or to the first violation.
    ///
    /// - Parameter showsRecords: whether the trace says after each line which records have changed.
    ///   They are read for that, of which a store may notice: so the run may be another one.
    package static func run(
        _ settings: SimulationSettings, _ steps: [Step], keepsTrace: Bool = false,
        showsRecords: Bool = false
    ) -> SimulationOutcome {
        let simulation = World(
            settings, keepsTrace: keepsTrace || showsRecords, showsRecords: showsRecords)
        simulation.run(steps)
        return SimulationOutcome(
            violation: simulation.violation, trace: simulation.trace,
            exchangeCount: simulation.exchangeCount,
            failedExchangeCount: simulation.failedExchangeCount,
            conflictCount: simulation.conflictCount, crashCount: simulation.crashCount,
            writeCount: simulation.model.writes.count, importCount: simulation.importCount,
            pastReadCount: simulation.pastReadCount,
            virtualMilliseconds: simulation.time.now)
    }

    private func run(_ steps: [Step]) {
        setClocks()
        for replica in replicas { open(replica) }
        for step in steps {
            pump(until: time.now + step.after)
            guard violation == nil else { return close() }
            note("\(step.action)")
            perform(step.action)
            pump(until: time.now)
        }
        heal()
        if violation == nil { checkEnd() }
        close()
    }

    private func close() {
        isOver = true
        // Tasks that are under way are led to their end, however they end.
        while activeExchanges > 0 {
            if executor.runNext() { continue }
            guard let due = time.nextDue, let body = time.next(by: due) else { break }
            body()
        }
        for replica in replicas {
            replica.storage.observe(nil)
            try? replica.store?.close()
        }
        // What was planned holds on to all of this.
        time.removeAll()
        if executor.strangerCount > 0 {
            fail(.leak, "\(executor.strangerCount) events came from another thread")
        }
    }

    func note(_ line: String) {
        guard !isOver else { return }
        trace.append("\(time.now) \(line)")
        if shownRecords != nil { showRecords() }
    }

    private func showRecords() {
        for (place, replica) in replicas.enumerated() where replica.isUp {
            for key in allKeys {
                let record = try? replica.record(key)
                let text = "\(Self.text(record)) \(record.map { "\($0.version.vector)" } ?? "")"
                let before = shownRecords?[place].updateValue(text, forKey: key)
                guard text != before ?? "nothing " else { continue }
                trace.remark("    \(place) has d\(key.dataset)/k\(key.number): \(text)")
            }
        }
    }

    func fail(_ kind: Violation.Kind, _ text: String) {
        guard violation == nil else { return }
        violation = Violation(kind: kind, text: text)
        guard !isOver else { return }
        note("violation: \(kind): \(text)")
    }

    // MARK: - Time

    /// Lets everything happen that is due by then.
    func pump(until limit: UInt64) {
        repeat {
            while violation == nil, executor.runNext() { afterEvent() }
            guard violation == nil, let body = time.next(by: limit) else { break }
            setClocks()
            body()
            afterEvent()
        } while violation == nil
        time.pass(to: limit)
        setClocks()
    }

    /// Lets time pass until something holds. False if it never will.
    func pump(while isWaiting: () -> Bool) -> Bool {
        while isWaiting(), violation == nil {
            if executor.runNext() {
                afterEvent()
                continue
            }
            guard let due = time.nextDue, let body = time.next(by: due) else { return false }
            setClocks()
            body()
            afterEvent()
        }
        return !isWaiting()
    }

    /// Counts the event, and lets those fall silent whose power failed in it.
    func afterEvent() {
        eventCount += 1
        if eventCount > Self.eventsMax { fail(.neverRests, "\(eventCount) events") }
        for replica in replicas where replica.remains != nil { fallSilent(replica) }
        noteLoneDeletions()
    }

    func setClocks() {
        for replica in replicas { replica.setClock(now: time.now) }
    }

    // MARK: - Network

    func isCut(_ one: Int, _ other: Int) -> Bool {
        !cuts.isEmpty && cuts.contains([min(one, other), max(one, other)])
    }

    func cut(_ one: Int, _ other: Int) { cuts.insert([min(one, other), max(one, other)]) }

    func join(_ one: Int, _ other: Int) { cuts.remove([min(one, other), max(one, other)]) }

    func joinAll() { cuts = [] }
}
