import Synchronization
import Tidemark
import TidemarkSync

/// A page that listens: what it is to be told, until it was. At most
/// ``ConsoleLimits/waitingEventsMax`` events wait for it, however slowly it reads.
final class ConsoleListener: Sendable {
    private struct State {
        var events: [String] = []
        var lostCount = 0
        var isBeatDue = false
        var isClosed = false
    }

    let session: ConsoleSessions.Session
    /// Says that there is something to tell. For one reader.
    let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private let state = Mutex(State())

    init(session: ConsoleSessions.Session) {
        self.session = session
        (wakes, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    func tell(_ events: [String]) {
        state.withLock { state in
            state.events += events
            let excess = state.events.count - ConsoleLimits.waitingEventsMax
            guard excess > 0 else { return }
            state.events.removeFirst(excess)
            state.lostCount += excess
        }
        wake.yield()
    }

    func beat() {
        state.withLock { $0.isBeatDue = true }
        wake.yield()
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wake.yield()
    }

    /// What there is to tell, once, as the HTML standard has events in section 9.2.
    func take() -> (text: String, isClosed: Bool) {
        state.withLock { state in
            var text = ""
            if state.lostCount > 0 {
                text += ConsoleFeed.event("lost", "{\"operations\":\(state.lostCount)}")
            }
            text += state.events.joined()
            // A comment, for those that had nothing else to hear.
            if state.isBeatDue, text.isEmpty { text = ": \n\n" }
            state.events.removeAll(keepingCapacity: true)
            state.lostCount = 0
            state.isBeatDue = false
            return (text, state.isClosed)
        }
    }
}

/// Tells pages what is written to the store, as it is: one reader of the store for all of them, and
/// none while nobody listens.
///
/// A dataset whose changes come faster than they are read is told by its newest ones, and how many
/// came before them. Of a key that changes twice meanwhile both count, and the newest is told.
final class ConsoleFeed: Sendable {
    private struct State {
        var listeners: [ConsoleListener] = []
        /// Whether changes are noticed.
        var isFollowing = false
        var isClosed = false
    }

    private let threads: HubThreads
    private let isOpen: @Sendable (ConsoleSessions.Session) -> Bool
    private let state = Mutex(State())
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    /// - Parameter isOpen: whether a session goes on.
    init(threads: HubThreads, isOpen: @escaping @Sendable (ConsoleSessions.Session) -> Bool) {
        self.threads = threads
        self.isOpen = isOpen
        (arrivals, arrival) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Lists a page. It is told `open` once all that is written from then on is told, too.
    ///
    /// - Returns: false if there are too many, or the hub shuts down.
    func add(_ listener: ConsoleListener) -> Bool {
        let (isAdded, isOpen) = state.withLock { state in
            guard !state.isClosed, state.listeners.count < ConsoleLimits.listenersMax else {
                return (false, false)
            }
            state.listeners.append(listener)
            return (true, state.isFollowing)
        }
        if isOpen { listener.tell([Self.openEvent]) }
        if isAdded { arrival.yield() }
        return isAdded
    }

    func remove(_ listener: ConsoleListener) {
        state.withLock { state in state.listeners.removeAll { $0 === listener } }
    }

    /// For the end of the hub: no more are taken.
    func closeAll() {
        let listeners = state.withLock { state in
            state.isClosed = true
            return state.listeners
        }
        for listener in listeners { listener.close() }
    }

    // MARK: - Following

    /// Follows the store while anybody listens, until the task is cancelled.
    func run() async {
        for await _ in arrivals {
            await follow()
        }
    }

    /// Now and then a sign of life for all, and the end for those whose session is over.
    func beat() async {
        while !Task.isCancelled {
            try? await SystemSyncEnvironment().sleep(for: ConsoleLimits.beatPeriod)
            for listener in state.withLock({ $0.listeners }) {
                if isOpen(listener.session) {
                    listener.beat()
                } else {
                    listener.close()
                }
            }
        }
    }

    private func follow() async {
        let changed = threads.stores.current.changedDatasets()
        guard begin() else { return }
        var reader = ConsoleFeedReader(start: SystemSyncEnvironment().now())
        while !Task.isCancelled {
            let names = await changed.next()
            guard goesOn() else { return }
            guard !names.isEmpty else {
                // The store was closed, and perhaps opened anew: look again in a moment.
                state.withLock { $0.isFollowing = false }
                try? await SystemSyncEnvironment().sleep(for: .seconds(1))
                arrival.yield()
                return
            }
            for start in stride(from: 0, to: names.count, by: Self.datasetsAtOnce) {
                let part = Array(names[start..<min(start + Self.datasetsAtOnce, names.count)])
                await tell(part, &reader)
            }
        }
    }

    /// So few that nobody else waits long for the thread.
    private static let datasetsAtOnce = 64

    private func tell(_ names: [String], _ reader: inout ConsoleFeedReader) async {
        let before = reader
        let found: (events: [String], reader: ConsoleFeedReader)
        do throws(APIFailure) {
            found = try await threads.read { store in
                var reader = before
                return (try reader.events(of: names, in: store), reader)
            }
        } catch {
            // The hub has too much to do: whoever looks knows that something was left out.
            found = ([Self.event("lost", "{\"datasets\":\(names.count)}")], before)
        }
        reader = found.reader
        guard !found.events.isEmpty else { return }
        for listener in state.withLock({ $0.listeners }) { listener.tell(found.events) }
    }

    /// Whether anybody listens; then all of them are told that changes are noticed from here on.
    private func begin() -> Bool {
        let listeners = state.withLock { state -> [ConsoleListener] in
            state.isFollowing = !state.listeners.isEmpty
            return state.listeners
        }
        for listener in listeners { listener.tell([Self.openEvent]) }
        return !listeners.isEmpty
    }

    /// Whether anybody listens still. Who comes behind a no finds nobody following.
    private func goesOn() -> Bool {
        state.withLock { state in
            if state.listeners.isEmpty { state.isFollowing = false }
            return state.isFollowing
        }
    }

    // MARK: - Events

    private static let openEvent = event("open", "{}")

    static func event(_ name: String, _ data: String) -> String {
        "event: \(name)\ndata: \(data)\n\n"
    }
}

/// Reads what is new in datasets that have changed.
struct ConsoleFeedReader: Sendable {
    /// Milliseconds since 1970: what a dataset that is met for the first time has of before is no
    /// news.
    private let start: UInt64
    /// By the names of datasets, what was told last.
    private var known: [String: UInt64] = [:]

    init(start: UInt64) {
        self.start = start
    }

    mutating func events(of names: [String], in store: Store) throws(StoreError) -> [String] {
        var events: [String] = []
        for name in names where !ConsoleNames.isOwn(name) {
            if known.count >= ConsoleLimits.followedMax { known.removeAll() }
            do throws(StoreError) {
                events += try self.events(of: name, in: store)
            } catch {
                guard error.code == .datasetNotFound else { throw error }
                events.append(deleted(name))
            }
        }
        return events
    }

    private mutating func events(
        of name: String, in store: Store
    ) throws(StoreError) -> [String] {
        guard let dataset = try store.existingDataset(name) else { return [deleted(name)] }
        let count = try dataset.syncCount.rawValue
        let last = known.updateValue(count, forKey: name)
        guard count > last ?? 0 else { return [] }
        let atOnce = UInt64(ConsoleLimits.operationsAtOnce)
        let since = max(last ?? 0, count - min(count, atOnce))
        var events: [String] = []
        if let last, since > last {
            events.append(
                ConsoleFeed.event(
                    "skipped",
                    "{\"dataset\":\(JSONText.quoted(name)),\"operations\":\(since - last)}"))
        }
        do throws(StoreError) {
            let cursor = try dataset.changes(since: SyncCount(rawValue: since))
            while let record = try cursor.next() {
                let isNews = last != nil || record.syncCount.rawValue == count
                guard isNews || record.version.time.milliseconds >= start, !record.isDropped
                else { continue }
                events.append(Self.event(of: record, in: name))
            }
        } catch {
            guard error.code == .changesExpired else { throw error }
            events.append(
                ConsoleFeed.event("skipped", "{\"dataset\":\(JSONText.quoted(name))}"))
        }
        return events
    }

    private mutating func deleted(_ name: String) -> String {
        known[name] = nil
        return ConsoleFeed.event("deleted", "{\"dataset\":\(JSONText.quoted(name))}")
    }

    private static func event(of record: Record, in name: String) -> String {
        var answer = JSONAnswer()
        answer.open("{")
        answer.add("dataset", text: name)
        answer.addMembers(of: record, valueBytesMax: ConsoleLimits.shownBytes)
        answer.close("}")
        return ConsoleFeed.event("operation", String(decoding: answer.bytes, as: UTF8.self))
    }
}
