import HummingbirdCore
import Logging
import NIOCore

/// Lets only so many connections in, and closes those that bring no request for long: before TLS,
/// so that neither a handshake that never ends nor half a head holds one.
struct LimitedChannel<Base: ServerChildChannel>: ServerChildChannel {
    typealias Value = Base.Value

    let base: Base
    let limits: ConnectionLimits
    let metrics: HubMetrics
    let headTime: TimeAmount

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
        channel.closeFuture.whenComplete { _ in
            deadline.cancel()
            limits.release(connection, from: address)
        }
        return base.setup(channel: channel, logger: logger)
    }

    func handle(value: Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
