import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import TidemarkSync

/// Why the body of a request was not read.
enum BodyFailure: Error, Hashable {
    /// It has more bytes than that.
    case tooLarge(Int)
    /// It ended before it was over.
    case incomplete
    case tooSlow
    /// There are too many bodies in memory.
    case noRoom
    /// It is compressed.
    case encoded
}

/// Reads bodies, and only as much of them as may be: in bytes, in time, and in all together.
struct RequestBodyReading: Sendable {
    let budget: BodyBudget
    let environment: any SyncEnvironment
    /// After so long a body must have come at some speed.
    let graceSeconds: Int
    let bytesPerSecondMin: Int

    /// What may be refused before the first byte of the body is read.
    ///
    /// - Throws: `encoded`, `tooLarge`.
    static func checkHead(of request: HTTPRequest, bytesMax: Int) throws(BodyFailure) {
        if let encoding = request.headerFields[.contentEncoding], encoding != "identity" {
            throw .encoded
        }
        if let declared = request.headerFields[.contentLength] {
            // Unreadable ones, and several that differ, do not come through the parser.
            guard let count = Int(declared) else { throw .incomplete }
            guard count <= bytesMax else { throw .tooLarge(bytesMax) }
        }
    }

    /// All of the body, empty if there is none.
    ///
    /// - Parameter share: holds the room of the body until nobody has it any more.
    func bytes(
        of body: RequestBody, _ head: HTTPRequest, bytesMax: Int, _ share: BodyShare
    ) async throws(BodyFailure) -> [UInt8] {
        if Self.hasNone(head) { return [] }
        try Self.checkHead(of: head, bytesMax: bytesMax)
        let declared = head.headerFields[.contentLength].flatMap { Int($0) }
        // What is declared may never come: room for more than this is taken as it does.
        var room = min(declared ?? 0, Self.firstRoomBytes)
        guard share.reach(room) else { throw .noRoom }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(room)
        let began = environment.now()
        do {
            for try await part in body {
                let count = bytes.count + part.readableBytes
                guard count <= bytesMax else { throw BodyFailure.tooLarge(bytesMax) }
                if count > room {
                    // Twice as much each time, so that what is there is seldom moved.
                    room = max(count, min(room * 2, declared ?? bytesMax))
                    guard share.reach(room) else { throw BodyFailure.noRoom }
                    bytes.reserveCapacity(room)
                }
                bytes.append(contentsOf: part.readableBytesView)
                guard isFastEnough(count, since: began) else { throw BodyFailure.tooSlow }
            }
        } catch let failure as BodyFailure {
            throw failure
        } catch {
            throw .incomplete
        }
        guard declared == nil || declared == bytes.count else { throw .incomplete }
        share.finish()
        return bytes
    }

    private static let firstRoomBytes = 65_536

    /// Whether there can be none: it is said to be empty, or nothing announces one and the method
    /// has none.
    static func hasNone(_ head: HTTPRequest) -> Bool {
        if head.headerFields[.contentLength] == "0" { return true }
        return (head.method == .get || head.method == .head || head.method == .delete)
            && head.headerFields[.contentLength] == nil
            && head.headerFields[.transferEncoding] == nil
    }

    /// Who sends nothing at all is seen by the connection's own idle time.
    private func isFastEnough(_ count: Int, since began: UInt64) -> Bool {
        let now = environment.now()
        guard now > began else { return true }
        let seconds = Int((now - began) / 1_000)
        guard seconds > graceSeconds else { return true }
        return count / seconds >= bytesPerSecondMin
    }
}
