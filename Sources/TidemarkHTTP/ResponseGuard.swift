package import AsyncHTTPClient
import NIOCore
import NIOHTTP1

extension HTTPClient.Configuration {
    /// The same, of HTTP/1.1 alone, with a guard in each connection against answers that would stop
    /// the process.
    ///
    /// A peer, or a damaged byte on the way, can make a status code below 100, like `000`. The
    /// parser lets it through with its body. The client takes each code below 200 for the
    /// announcement of an answer that is still to come, and traps at the body. The guard fails such
    /// an answer with `HTTPParserError.invalidStatus` before the client sees it.
    package var guarded: Self {
        var configuration = self
        configuration.httpVersion = .http1Only
        configuration.http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.makeCompletedFuture {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(
                    type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                try pipeline.addHandler(ResponseGuard(), position: .after(decoder))
            }
        }
        return configuration
    }
}

/// Ends a connection at the first head whose status code is none of HTTP's.
private final class ResponseGuard: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private var refused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !refused else { return }
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
            refused = true
            context.fireErrorCaught(HTTPParserError.invalidStatus)
            context.close(promise: nil)
            return
        }
        context.fireChannelRead(data)
    }
}
