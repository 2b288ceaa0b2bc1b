import FoundationEssentials
import Hummingbird
import Logging
import NIOCore

/// What is known of a request besides itself.
struct HubContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Of the connection, or of the request's own stream in HTTP/2.
    let channel: any Channel
    /// nil if the logger has one.
    private let ownID: String?

    private static let idKey = "hb.request.id"

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        let isNoted = source.logger[metadataKey: Self.idKey] != nil
        ownID = isNoted ? nil : UUID().uuidString
    }

    /// By which the log and the answer speak of the request. The server's own property reads it
    /// from the logger and traps if that keeps no metadata, as one that logs nothing does.
    var id: String {
        ownID ?? logger[metadataKey: Self.idKey]?.description ?? ""
    }

    /// A stream's parent is a connection, whose parent is what listens; a connection's has none.
    var isHTTP2: Bool { channel.parent?.parent != nil }

    /// As limits count it.
    var address: String? { ClientAddress.name(of: channel.remoteAddress) }
}
