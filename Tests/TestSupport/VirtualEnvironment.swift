import Synchronization
import TidemarkSync

/// Time that passes only when a test says so.
package final class VirtualEnvironment: SyncEnvironment {
    private struct Sleeper {
        let due: Duration
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct Watcher {
        let count: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        /// Since 1970.
        var now = Duration.seconds(1_700_000_000)
        var nextNumber = 0
        var sleepers: [Int: Sleeper] = [:]
        var watchers: [Watcher] = []
        var slept: [Duration] = []
        var randoms: [UInt64] = []
    }

    private let state = Mutex(State())
    /// Whether every sleep is over at once, and the time has passed.
    private let passesBySleeping: Bool

    package init(passesBySleeping: Bool = false) {
        self.passesBySleeping = passesBySleeping
    }

    package func now() -> UInt64 {
        let (seconds, attoseconds) = state.withLock { $0.now }.components
        return UInt64(seconds) * 1_000 + UInt64(attoseconds / 1_000_000_000_000_000)
    }

    /// How many tasks sleep now.
    package var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// All durations that were slept for, in the order of their beginnings.
    package var slept: [Duration] { state.withLock { $0.slept } }

    /// What ``random()`` gives next; zeros after that.
    package func setRandoms(_ numbers: [UInt64]) {
        state.withLock { $0.randoms = numbers }
    }

    package func random() -> UInt64 {
        state.withLock { $0.randoms.isEmpty ? 0 : $0.randoms.removeFirst() }
    }

    package func sleep(for duration: Duration) async throws(CancellationError) {
        let number = state.withLock { state in
            state.slept.append(duration)
            state.nextNumber += 1
            return state.nextNumber
        }
        guard !passesBySleeping else {
            state.withLock { $0.now += duration }
            if Task.isCancelled { throw CancellationError() }
            return
        }
        let isOver = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                let (isCancelled, woken) = state.withLock { state -> (Bool, [Watcher]) in
                    guard !Task.isCancelled else { return (true, []) }
                    state.sleepers[number] = Sleeper(
                        due: state.now + duration, continuation: continuation)
                    let count = state.sleepers.count
                    defer { state.watchers.removeAll { $0.count <= count } }
                    return (false, state.watchers.filter { $0.count <= count })
                }
                if isCancelled { continuation.resume(returning: false) }
                for watcher in woken { watcher.continuation.resume() }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.continuation.resume(returning: false)
        }
        guard isOver else { throw CancellationError() }
    }

    /// Returns when so many tasks sleep.
    package func untilAsleep(_ count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.sleepers.count < count else { return true }
                state.watchers.append(Watcher(count: count, continuation: continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    package func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            let due = state.sleepers.filter { $0.value.due <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.sorted { $0.key < $1.key }.map(\.value)
        }
        for sleeper in due { sleeper.continuation.resume(returning: true) }
    }
}
