import Logging
import Synchronization
import TidemarkSync

/// Deliveries that wait on disk. They fall into lanes: in a lane one comes after the other, and
/// lanes do not wait for each other.
protocol DeliverySource: Sendable {
    /// The first lanes in which anything waits, in their order.
    ///
    /// - Parameter limit: of how many are told.
    func lanes(limit: Int) async throws -> [String]

    /// Makes the next delivery of a lane, and forgets it when it was taken.
    ///
    /// - Returns: false if nothing waits there.
    /// - Throws: if it was not taken. It stays, and is tried again after a while.
    func deliverNext(in lane: String) async throws -> Bool
}

/// Makes deliveries until the task is cancelled, each lane in its order, each at least once.
///
/// Memory is bounded whatever waits on disk: so many lanes are known at once, and when half of them
/// are done the disk is asked for more. What fails is tried again after 1 s, then 2, up to 5
/// minutes, each shortened by up to half at random. So a receiver that is dead costs some memory
/// and a question now and then.
///
/// A crash leaves what was not taken on disk, and what was taken and not yet forgotten too: that
/// comes a second time.
final class DeliveryLoop<Source: DeliverySource>: Sendable {
    private enum Lane {
        case ready
        /// - Parameter again: whether it was woken since it was last looked at.
        case running(again: Bool)
        /// After a failure.
        case waiting
    }

    private struct State {
        var lanes: [String: Lane] = [:]
        var failures: [String: Int] = [:]
        /// The first to come last, so that taking one is O(1).
        var ready: [String] = []
        var arrivals: [String] = []
        var runningCount = 0
        /// Whether there may be lanes on disk that are not known here.
        var isPartial = true
    }

    static var lanesMax: Int { 4_096 }
    /// Deliveries of one lane in a row, as long as others are ready.
    private static var turnMax: Int { 32 }

    private let source: Source
    private let name: String
    private let atOnceMax: Int
    private let backOff: BackOff
    private let clock: any SyncEnvironment
    private let logger: Logger
    private let state = Mutex(State())
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    /// - Parameters:
    ///   - name: for the log.
    ///   - atOnceMax: deliveries under way at a time.
    init(
        _ source: Source, name: String, atOnceMax: Int = 16,
        backOff: BackOff = BackOff(first: .seconds(1)), clock: any SyncEnvironment, logger: Logger
    ) {
        self.source = source
        self.name = name
        self.atOnceMax = atOnceMax
        self.backOff = backOff
        self.clock = clock
        self.logger = logger
        (signals, signal) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Lanes known at present. For metrics and tests.
    var laneCount: Int { state.withLock { $0.lanes.count } }

    /// Says that something has come into a lane. Does not block.
    func wake(_ lane: String) {
        let isNews = state.withLock { state in
            switch state.lanes[lane] {
            case nil:
                guard state.lanes.count < Self.lanesMax else {
                    // It waits on disk.
                    state.isPartial = true
                    return false
                }
                state.lanes[lane] = .ready
                state.arrivals.append(lane)
                return true
            case .running?:
                state.lanes[lane] = .running(again: true)
                return false
            case .ready?, .waiting?:
                return false
            }
        }
        if isNews { signal.yield() }
    }

    /// Has the disk be asked for what nobody has told of: as of a write that was durable although
    /// it failed. Does not block.
    func lookAgain() {
        state.withLock { $0.isPartial = true }
        signal.yield()
    }

    /// Returns when the task is cancelled. To be called once.
    func run() async {
        signal.yield()
        await withDiscardingTaskGroup { group in
            for await _ in signals {
                await askIfNeeded(&group)
                while let lane = takeReady() {
                    group.addTask { await self.work(in: lane) }
                }
            }
            group.cancelAll()
        }
    }

    private func takeReady() -> String? {
        state.withLock { state in
            guard state.runningCount < atOnceMax else { return nil }
            if state.ready.isEmpty {
                state.ready = state.arrivals.reversed()
                state.arrivals.removeAll(keepingCapacity: true)
            }
            guard let lane = state.ready.popLast() else { return nil }
            state.lanes[lane] = .running(again: false)
            state.runningCount += 1
            return lane
        }
    }

    // MARK: - One lane

    private func work(in lane: String) async {
        var count = 0
        while !Task.isCancelled {
            do {
                let wasDelivered = try await source.deliverNext(in: lane)
                noteSuccess(of: lane)
                count += 1
                if !wasDelivered, isDone(lane) { return }
                if count >= Self.turnMax {
                    putBack(lane, isRunning: true)
                    return
                }
            } catch {
                await waitAndPutBack(lane, error)
                return
            }
        }
    }

    /// Whether nothing more has come into an empty lane. Then it is not known any more.
    private func isDone(_ lane: String) -> Bool {
        let isDone = state.withLock { state in
            if case .running(again: true)? = state.lanes[lane] {
                state.lanes[lane] = .running(again: false)
                return false
            }
            state.lanes[lane] = nil
            state.runningCount -= 1
            return true
        }
        if isDone { signal.yield() }
        return isDone
    }

    private func putBack(_ lane: String, isRunning: Bool) {
        state.withLock { state in
            if isRunning { state.runningCount -= 1 }
            state.lanes[lane] = .ready
            state.arrivals.append(lane)
        }
        signal.yield()
    }

    private func noteSuccess(of lane: String) {
        let failures = state.withLock { $0.failures.removeValue(forKey: lane) }
        guard let failures else { return }
        logger.notice(
            "delivered again",
            metadata: ["to": "\(name)", "lane": "\(lane)", "failures": "\(failures)"])
    }

    private func waitAndPutBack(_ lane: String, _ error: any Error) async {
        let failures = state.withLock { state in
            let failures = (state.failures[lane] ?? 0) + 1
            state.failures[lane] = failures
            state.lanes[lane] = .waiting
            state.runningCount -= 1
            return failures
        }
        signal.yield()
        guard !Task.isCancelled else { return }
        let delay = backOff.delay(after: failures, random: clock.random())
        // The first failure of many, and then fewer and fewer, so that the log stays readable.
        if failures & (failures - 1) == 0 {
            logger.warning(
                "not delivered; it is tried again",
                metadata: [
                    "to": "\(name)", "lane": "\(lane)", "error": "\(error)",
                    "failures": "\(failures)", "wait": "\(delay)",
                ])
        }
        do {
            try await clock.sleep(for: delay)
        } catch {
            return
        }
        putBack(lane, isRunning: false)
    }

    // MARK: - What waits on disk

    /// Asks the disk for lanes, if there may be some that are not known and there is room.
    private func askIfNeeded(_ group: inout DiscardingTaskGroup) async {
        let isNeeded = state.withLock { state in
            guard state.isPartial, state.lanes.count <= Self.lanesMax / 2 else { return false }
            // What is woken from here on, and finds no room, makes it true again.
            state.isPartial = false
            return true
        }
        guard isNeeded else { return }
        do {
            // More than are known: so there are new ones among them, unless these are all.
            let found = try await source.lanes(limit: Self.lanesMax)
            take(found)
        } catch {
            logger.warning(
                "what waits for delivery cannot be read; it is tried again",
                metadata: ["to": "\(name)", "error": "\(error)"])
            state.withLock { $0.isPartial = true }
            let (clock, signal) = (clock, signal)
            group.addTask {
                do {
                    try await clock.sleep(for: .seconds(1))
                    signal.yield()
                } catch {
                    // The hub is shutting down.
                }
            }
        }
    }

    private func take(_ found: [String]) {
        state.withLock { state in
            if found.count >= Self.lanesMax { state.isPartial = true }
            for lane in found where state.lanes[lane] == nil {
                guard state.lanes.count < Self.lanesMax else {
                    state.isPartial = true
                    return
                }
                state.lanes[lane] = .ready
                state.arrivals.append(lane)
            }
        }
    }
}
