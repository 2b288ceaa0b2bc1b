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

    /// How many records the page has that a message carries, of the pages whose number of records
    /// is bounded by what both sides ask for; nil if it carries none of those. O(bytes).
    package static func pageRecordCount(in message: [UInt8]) -> Int? {
        guard message.count > MessageFrame.kindOffset,
            let kind = MessageKind(rawValue: message[MessageFrame.kindOffset]),
            [.pullAnswer, .scopedPullAnswer, .sweepAnswer, .push, .partPush].contains(kind),
            let whole = try? SyncMessage(MessageFrame.decoded(message))
        else { return nil }
        switch whole {
        case .pullAnswer(let answer): return answer.page.recordCount
        case .scopedPullAnswer(let answer): return answer.page.recordCount + answer.outside.count
        case .sweepAnswer(let answer): return answer.page.recordCount
        case .push(let request), .partPush(let request): return request.page.recordCount
        default: return nil
        }
    }

    /// Whether the message is an error answer.
    package static func isFailure(_ message: [UInt8]) -> Bool {
        message.count > MessageFrame.kindOffset
            && message[MessageFrame.kindOffset] == MessageKind.failure.rawValue
    }
}
