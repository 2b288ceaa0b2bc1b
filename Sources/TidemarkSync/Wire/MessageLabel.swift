/// What a message is, for logs and metrics: a name out of a small set, whatever the bytes are.
package enum MessageLabel {
    package static func kind(of message: [UInt8]) -> String {
        guard message.count > MessageFrame.kindOffset,
            message.starts(with: MessageFrame.magic),
            let kind = MessageKind(rawValue: message[MessageFrame.kindOffset])
        else { return "unknown" }
        return "\(kind)"
    }

    /// Whether the message is a question whose answer may wait for something to happen.
    package static func isWatch(_ message: [UInt8]) -> Bool {
        message.starts(with: MessageFrame.magic) && message.count > MessageFrame.kindOffset
            && message[MessageFrame.kindOffset] == MessageKind.watch.rawValue
    }

    /// Whether the message is an error answer.
    package static func isFailure(_ message: [UInt8]) -> Bool {
        message.count > MessageFrame.kindOffset
            && message[MessageFrame.kindOffset] == MessageKind.failure.rawValue
    }
}
