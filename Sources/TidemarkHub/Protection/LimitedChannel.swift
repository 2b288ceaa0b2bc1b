import HummingbirdCore
import Logging
import NIOCore

/// Lets only so many connections in, and closes those that bring no request for long: before TLS,
/// so that neither a handshake that never ends nor half a head holds one. Closes those of HTTP/2,
/// too, that had no stream for long and did not go when they were told to.
struct LimitedChannel<Base: ServerChildChannel>: ServerChildChannel {
    typealias Value = Base.Value

    let base: Base
    let limits: ConnectionLimits
    let metrics: HubMetrics
    let headTime: TimeAmount
    /// After which a connection of HTTP/2 without streams is told to go; nil if there are none.
    let streamIdleTime: TimeAmount?

    /// What a client that is told to go has for that.
    private static var goTime: TimeAmount { .seconds(2) }

    /// Nobody is told: the connection is closed already.
    private struct Refused: Error {}

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        let (limits, connection) = (limits, ObjectIdentifier(channel))
        let address = ClientAddress.name(of: channel.remoteAddress)
        guard limits.admit(connection, from: address) else {
            metrics.refusedConnection()
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(Refused())
        }
        let deadline = channel.eventLoop.scheduleTask(in: headTime) {
            if limits.isFresh(connection) { channel.close(promise: nil) }
        }
        let idleWatch = watchStreams(of: channel)
        channel.closeFuture.whenComplete { _ in
            deadline.cancel()
            idleWatch?.cancel()
            limits.release(connection, from: address)
        }
        return base.setup(channel: channel, logger: logger)
    }

    private func watchStreams(of channel: any Channel) -> RepeatedTask? {
        guard let idleTime = streamIdleTime else { return nil }
        let (streams, quietTime) = (limits.streams, idleTime + Self.goTime)
        let period = TimeAmount.nanoseconds(max(1_000_000_000, idleTime.nanoseconds / 4))
        return channel.eventLoop.scheduleRepeatedTask(
            initialDelay: idleTime, delay: period
        ) { _ in
            guard let quietSince = streams.quietSince(ObjectIdentifier(channel)),
                quietSince + quietTime <= .now()
            else { return }
            channel.close(promise: nil)
        }
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
