import NIOCore
import Synchronization

/// Counts the connections, in all and of each address, and knows which have not brought a request
/// yet.
final class ConnectionLimits: Sendable {
    private struct State {
        var count = 0
        var countOfAddress: [String: Int] = [:]
        var fresh: Set<ObjectIdentifier> = []
    }

    /// Of HTTP/2.
    let streams = StreamActivity()
    private let state = Mutex(State())
    private let connectionsMax: Int
    private let connectionsPerAddressMax: Int

    init(connectionsMax: Int, connectionsPerAddressMax: Int) {
        self.connectionsMax = connectionsMax
        self.connectionsPerAddressMax = connectionsPerAddressMax
    }

    var count: Int { state.withLock { $0.count } }

    /// - Parameter address: of the other side; nil where there are none.
    /// - Returns: whether the connection may stay. It is counted then, until it is released.
    func admit(_ connection: ObjectIdentifier, from address: String?) -> Bool {
        state.withLock { state in
            guard state.count < connectionsMax else { return false }
            if let address {
                let ofAddress = state.countOfAddress[address] ?? 0
                guard ofAddress < connectionsPerAddressMax else { return false }
                state.countOfAddress[address] = ofAddress + 1
            }
            state.count += 1
            state.fresh.insert(connection)
            return true
        }
    }

    func release(_ connection: ObjectIdentifier, from address: String?) {
        state.withLock { state in
            state.count -= 1
            state.fresh.remove(connection)
            guard let address, let ofAddress = state.countOfAddress[address] else { return }
            state.countOfAddress[address] = ofAddress > 1 ? ofAddress - 1 : nil
        }
        streams.forget(connection)
    }

    /// A request has come. Of HTTP/2 it has a channel of its own, whose parent is the connection.
    func noteRequest(on channel: any Channel) {
        noteStream(channel)
        state.withLock { state in
            guard !state.fresh.isEmpty,
                state.fresh.remove(ObjectIdentifier(channel)) == nil, let parent = channel.parent
            else { return }
            state.fresh.remove(ObjectIdentifier(parent))
        }
    }

    private func noteStream(_ channel: any Channel) {
        // What listens is the parent of a connection, and has none itself.
        guard let connection = channel.parent, connection.parent != nil else { return }
        let streams = streams
        streams.began(on: ObjectIdentifier(connection), at: .now())
        channel.closeFuture.whenComplete { _ in
            // The connection is held until here, so that no other one has its identifier.
            streams.ended(on: ObjectIdentifier(connection), at: .now())
        }
    }

    func isFresh(_ connection: ObjectIdentifier) -> Bool {
        state.withLock { $0.fresh.contains(connection) }
    }
}
