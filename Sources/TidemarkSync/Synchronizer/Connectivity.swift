import Synchronization

/// What kind of network there is.
public enum Connectivity: Hashable, Sendable {
    case offline
    /// There is one on which every byte costs: a mobile network, a metered line.
    case expensive
    case free
}

/// Which networks a ``Synchronizer`` may use. ``freeOnly`` is the Wi-Fi-only switch.
public enum NetworkPolicy: Hashable, Sendable {
    case anyNetwork
    case freeOnly

    /// Why nothing may be sent now; nil if it may.
    func refusal(of connectivity: Connectivity) -> SyncError? {
        switch (connectivity, self) {
        case (.offline, _):
            SyncError(
                .offline,
                "there is no network; repeat when there is, or wait for it with "
                    + "synchronizeWhenConnected")
        case (.expensive, .freeOnly):
            SyncError(
                .expensiveNetwork,
                "there is only an expensive network, which the network policy leaves alone; wait "
                    + "for another, or allow it")
        case (.expensive, .anyNetwork), (.free, _):
            nil
        }
    }
}

/// Tells what network there is. The app supplies it: what a service calls connected (an interface,
/// a proxy, a flag of an operator) it alone knows.
public protocol ConnectivitySource: Sendable {
    /// As of now. Asked often, so it must not block.
    var connectivity: Connectivity { get }

    /// Every state from now on, beginning with the present one. Each call gives a stream of its
    /// own; states that the consumer has had no time for may be left out, the newest never.
    func changes() -> AsyncStream<Connectivity>
}

/// A ``ConnectivitySource`` that is told by hand.
///
/// ```swift
/// let network = ConnectivitySwitch(.offline)
/// let synchronizer = Synchronizer(store: store, transport: hub, connectivity: network)
/// network.set(.free)
/// ```
public final class ConnectivitySwitch: ConnectivitySource {
    private struct State {
        var connectivity: Connectivity
        var nextNumber = 0
        var listeners: [Int: AsyncStream<Connectivity>.Continuation] = [:]
    }

    private let state: Mutex<State>

    public init(_ connectivity: Connectivity) {
        state = Mutex(State(connectivity: connectivity))
    }

    deinit {
        for listener in state.withLock({ Array($0.listeners.values) }) {
            listener.finish()
        }
    }

    public var connectivity: Connectivity { state.withLock { $0.connectivity } }

    public func set(_ connectivity: Connectivity) {
        state.withLock { state in
            state.connectivity = connectivity
            // Under the lock, so that the last one told is the last one set. This only stores the
            // value; who waits for it goes on later, on a thread of its own.
            for listener in state.listeners.values {
                listener.yield(connectivity)
            }
        }
    }

    public func changes() -> AsyncStream<Connectivity> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Connectivity.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.nextNumber += 1
            state.listeners[state.nextNumber] = continuation
            continuation.yield(state.connectivity)
            return state.nextNumber
        }
        continuation.onTermination = { [weak self] _ in
            guard let self else { return }
            state.withLock { _ = $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }
}
