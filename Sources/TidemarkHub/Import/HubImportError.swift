/// Why an import has stopped. What was taken until then stays, and the next one goes on from there.
public struct HubImportError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// What was asked for makes no sense: an address, a name.
        case invalidArgument
        /// No answer, again and again.
        case unreachable
        /// An answer that says no; the credentials, or what they may do, most likely.
        case refused
        /// An answer that is none of the API.
        case badAnswer
    }

    public let code: Code
    /// With the remedy. Holds no secret.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
