import NIOCore

/// Closes a connection, or a stream of HTTP/2, whose other side takes nothing of what it is sent
/// for long. What waits to be sent is in memory, and a connection with a request under way is never
/// idle: without this, who asks and does not read would keep both for ever.
final class UnreadAnswerHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let time: TimeAmount
    /// While more waits than the channel wants to hold.
    private var deadline: Scheduled<Void>?

    /// - Parameter time: within which so much must be taken that there is room for more.
    init(time: TimeAmount) {
        self.time = time
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        let channel = context.channel
        if channel.isWritable {
            cancel()
        } else if deadline == nil {
            deadline = channel.eventLoop.scheduleTask(in: time) {
                channel.close(promise: nil)
            }
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        cancel()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        cancel()
    }

    private func cancel() {
        deadline?.cancel()
        deadline = nil
    }
}
