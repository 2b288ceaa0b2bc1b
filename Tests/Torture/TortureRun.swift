import Glibc
import TestSupport
import Tidemark

// A round of a run:
//
//   storm: the hub and the replicas write, synchronise, are killed and started again, while the
//          proxy does what it does
//   rest:  all trouble ends; replica by replica synchronises until nothing moves any more
//   check: all processes are gone; the driver opens the stores and compares
//
// Only the driver's one thread touches the model and the children. The proxy has its own threads.

/// Thrown where differences have been told already.
private struct Differing: Error {}

/// Rounds of trouble, rest and comparison, for as long as it is told.
final class TortureRun {
    private static let replicaCount = 3
    private static let stormSeconds = 4.0
    private static let lineSeconds = 5.0
    /// In less time something may not have come up yet, on a slow machine.
    private static let troubleSecondsMin = 60.0
    // Outer limits, which only a hang takes, however slow the machine is.
    private static let startSecondsMax = 300.0
    private static let restSecondsMax = 600.0
    private static let restPassesMax = 12

    private let options: TortureOptions
    private let directory: TemporaryDirectory
    private let interruption: Interruption
    private let started = TortureRun.now()
    private let proxy: TortureProxy
    /// The replicas by their numbers, and then the hub.
    private let children: [TortureChild]
    private var random: SeededGenerator
    private var model: TortureModel
    private var counts = TortureCounts()
    /// The ids under which the children's stores were first opened.
    private var ids: [ReplicaID?]
    private var isListening = false
    /// What the last child that came to rest had moved before.
    private var restedAfter: Int?
    private var nextLine = 0.0

    init(
        _ options: TortureOptions, in directory: TemporaryDirectory, _ interruption: Interruption
    ) throws {
        self.options = options
        self.directory = directory
        self.interruption = interruption
        var random = SeededGenerator(options.seed)
        proxy = try TortureProxy(random.split())
        self.random = random
        let names = (0..<Self.replicaCount).map { "replica-\($0)" } + ["hub"]
        children = names.map { TortureChild($0, directory: directory[$0]) }
        model = TortureModel(options.seed, replicaCount: Self.replicaCount)
        ids = names.map { _ in nil }
    }

    private var replicas: Range<Int> { 0..<Self.replicaCount }
    private var hub: Int { Self.replicaCount }

    private static let epoch = ContinuousClock.now

    /// Seconds since the first call.
    private static func now() -> Double {
        (ContinuousClock.now - epoch) / .seconds(1)
    }

    /// True if there was no difference.
    func run() -> Bool {
        say("torture: seed \(options.seed), \(directory.path)")
        nextLine = started + Self.lineSeconds
        do {
            repeat {
                try round(until: started + options.seconds)
            } while Self.now() < started + options.seconds
            checkTrouble()
        } catch is Interrupted {
            say("torture: interrupted")
        } catch is Differing {
            say("torture: round \(counts.rounds) is the last")
        } catch {
            difference("\(error)")
        }
        for child in children {
            // Whatever it still tells is of no use any more.
            _ = try? child.end()
        }
        proxy.stop()
        say(line)
        return counts.differences == 0
    }

    private func difference(_ text: String) {
        counts.differences += 1
        say("torture: DIFFERENCE: \(text)")
    }

    /// A run that is long enough has been through all that it is there for.
    private func checkTrouble() {
        guard options.seconds >= Self.troubleSecondsMin else { return }
        for what in counts.missing(proxy.counts) {
            difference("in \(Int(options.seconds)) s there was not one \(what)")
        }
    }

    private var line: String {
        let seconds = Int(Self.now() - started)
        return "torture: \(seconds) s, \(counts.text(proxy.counts)), seed \(options.seed)"
    }

    // MARK: - A round

    private func round(until end: Double) throws {
        counts.rounds += 1
        // The first round has all of it, so that no run is without any of it.
        let drawn = ProxyFaults.drawn(&random)
        proxy.trouble(with: counts.rounds == 1 ? .all : drawn)
        let now = Self.now()
        try storm(until: now + min(Self.stormSeconds, max(1, end - now)))
        try rest()
        try check()
        // What it had is elsewhere: it takes over everything anew, through the trouble of the
        // next round.
        if random.oneIn(3) {
            let replica = random.below(Self.replicaCount)
            Files.removeTree(children[replica].directory)
            model.beginAnew(replica)
            ids[replica] = nil
            counts.newStores += 1
        }
    }

    private func storm(until end: Double) throws {
        for index in children.indices {
            children[index].due = Self.now() + Double(random.below(50)) / 1_000
        }
        while Self.now() < end {
            for index in children.indices {
                let child = children[index]
                if child.isRunning {
                    if Self.now() >= child.due { try kill(index) } else { try hear(index) }
                } else if Self.now() >= child.due {
                    try start(index, index == hub ? .hub : .storm)
                    child.due = Self.now() + drawnLife(of: index)
                }
            }
            try pause()
        }
    }

    /// Some lives end before the store is open.
    private func drawnLife(of index: Int) -> Double {
        if random.oneIn(8) { return Double(random.below(80)) / 1_000 }
        return Double(150 + random.below(index == hub ? 2_500 : 1_500)) / 1_000
    }

    private func rest() throws {
        proxy.heal()
        for index in children.indices { try kill(index) }
        try start(hub, .hub)
        try wait(seconds: Self.startSecondsMax, "for the hub to listen") {
            try hear(hub)
            return isListening
        }
        for _ in 0..<Self.restPassesMax {
            var moved = 0
            for replica in replicas { moved += try restOne(replica) }
            if moved == 0 { return }
        }
        throw Mismatch("records still move after \(Self.restPassesMax) passes without trouble")
    }

    /// - Returns: how many records it moved.
    private func restOne(_ replica: Int) throws -> Int {
        restedAfter = nil
        try start(replica, .rest)
        try wait(seconds: Self.restSecondsMax, "for \(children[replica].name) to rest") {
            try hear(hub)
            return try !hearOn(replica)
        }
        let end = try children[replica].end()
        try take(end.tellings, of: replica)
        guard let moved = restedAfter else {
            throw Mismatch("\(children[replica].name) ended before it came to rest")
        }
        return moved
    }

    private func check() throws {
        try kill(hub)
        var first: StoreContent?
        for index in children.indices {
            let name = children[index].name
            let opening = order(.rest, index)
            let content: StoreContent
            do {
                content = try StoreContent(at: opening.directory, opening.options)
            } catch {
                throw Mismatch("\(name): \(error)")
            }
            try checkIdentity(content.replica, of: index)
            for damage in content.damages { difference("\(name) is damaged: \(damage)") }
            for text in model.differences(in: content.found).prefix(10) {
                difference("\(name): \(text)")
            }
            if let first, first.digests != content.digests {
                difference("digests: \(first.digests), and of \(name) \(content.digests)")
            }
            first = first ?? content
        }
        guard counts.differences == 0 else { throw Differing() }
    }

    // MARK: - Children

    private func order(_ role: ChildOrder.Role, _ index: Int) -> ChildOrder {
        let child = children[index]
        let isReplica = replicas.contains(index)
        return ChildOrder(
            role: role, directory: child.directory, seed: options.seed, replica: index,
            life: child.lives, number: isReplica ? model.acknowledged[index] : 0,
            writeCount: isReplica ? model.writeCounts[index] : 0, url: proxy.url,
            plantedBugs: options.plantedBugs)
    }

    private func start(_ index: Int, _ role: ChildOrder.Role) throws {
        if index == hub { isListening = false }
        try children[index].start(order(role, index))
    }

    private func kill(_ index: Int) throws {
        guard children[index].isRunning else { return }
        let end = try children[index].end()
        try take(end.tellings, of: index)
        if index == hub { proxy.lead(to: nil) }
        guard !end.byItself else { throw Mismatch("\(children[index].name) ended by itself") }
        if index == hub { counts.hubKills += 1 } else { counts.replicaKills += 1 }
        children[index].due = Self.now() + Double(random.below(250)) / 1_000
    }

    /// Hears a child that has no reason to end.
    private func hear(_ index: Int) throws {
        guard try !hearOn(index) else { return }
        let end = try children[index].end()
        try take(end.tellings, of: index)
        throw Mismatch("\(children[index].name) ended by itself")
    }

    /// - Returns: false once it tells no more.
    private func hearOn(_ index: Int) throws -> Bool {
        guard let tellings = try children[index].tellings(waitingMilliseconds: 0) else {
            return false
        }
        try take(tellings, of: index)
        return true
    }

    private func take(_ tellings: [Telling], of index: Int) throws {
        for telling in tellings {
            switch telling {
            case .opened(let id): try checkIdentity(id, of: index)
            case .listening(let port):
                isListening = true
                proxy.lead(to: port)
            case .wrote(let number, let standings):
                try model.acknowledge(number, of: index, standings)
                counts.operations += 1
            case .exchanged(let pulled, let pushed):
                counts.exchanges += 1
                counts.records += pulled + pushed
            case .failed: counts.failures += 1
            case .rested(let moved): restedAfter = moved
            case .fault(let text): throw Mismatch("\(children[index].name): \(text)")
            }
        }
    }

    /// No disk here ever goes back in time, so no store has a reason to take another id.
    private func checkIdentity(_ id: ReplicaID, of index: Int) throws {
        let known = ids[index] ?? id
        ids[index] = known
        try require(
            id == known, "\(children[index].name) was replica \(known), and is \(id) now")
    }

    // MARK: - Waiting

    private func wait(
        seconds: Double, _ what: String, until isDone: () throws -> Bool
    ) throws {
        let end = Self.now() + seconds
        while try !isDone() {
            guard Self.now() < end else { throw Mismatch("waited \(Int(seconds)) s \(what)") }
            try pause()
        }
    }

    /// A moment, in which a line is printed when it is time.
    private func pause() throws {
        if interruption.signalNumber != nil { throw Interrupted() }
        if Self.now() >= nextLine {
            say(line)
            nextLine = Self.now() + Self.lineSeconds
        }
        usleep(1_000)
    }
}
