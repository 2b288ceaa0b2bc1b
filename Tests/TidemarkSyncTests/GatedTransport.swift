import Synchronization
import TidemarkSync

/// Holds messages back until it is opened; those that are held can be cancelled.
final class GatedTransport: SyncTransport {
    private struct State {
        var isOpen: Bool
        var arrived = 0
        var nextNumber = 0
        var held: [Int: CheckedContinuation<Bool, Never>] = [:]
        var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let inner: any SyncTransport
    private let state: Mutex<State>

    init(_ inner: any SyncTransport, isOpen: Bool = false) {
        self.inner = inner
        state = Mutex(State(isOpen: isOpen))
    }

    /// Messages that came, held or not.
    var arrived: Int { state.withLock { $0.arrived } }

    func open() {
        let held = state.withLock { state in
            state.isOpen = true
            defer { state.held = [:] }
            return state.held.values
        }
        for continuation in held { continuation.resume(returning: true) }
    }

    func close() {
        state.withLock { $0.isOpen = false }
    }

    /// Lets those go that are held now, and no others.
    func letThrough() {
        let held = state.withLock { state in
            defer { state.held = [:] }
            return state.held.values
        }
        for continuation in held { continuation.resume(returning: true) }
    }

    /// Returns when so many messages have come in all.
    func untilArrived(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.arrived < count else { return true }
                state.watchers.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let passes = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                typealias Woken = [CheckedContinuation<Void, Never>]
                let (passes, woken) = state.withLock { state -> (Bool?, Woken) in
                    state.arrived += 1
                    let count = state.arrived
                    let woken = state.watchers.filter { $0.count <= count }.map(\.continuation)
                    state.watchers.removeAll { $0.count <= count }
                    guard !Task.isCancelled else { return (false, woken) }
                    guard !state.isOpen else { return (true, woken) }
                    state.held[number] = continuation
                    return (nil, woken)
                }
                if let passes { continuation.resume(returning: passes) }
                for watcher in woken { watcher.resume() }
            }
        } onCancel: {
            let held = state.withLock { $0.held.removeValue(forKey: number) }
            held?.resume(returning: false)
        }
        guard passes else { throw SyncError(.cancelled, "the test's message was cancelled") }
        return try await inner.send(request)
    }
}
