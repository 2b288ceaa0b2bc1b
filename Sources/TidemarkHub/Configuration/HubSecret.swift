/// A token or key that must not be seen. Nothing that describes it, such as a log line or a
/// debugger's view of the settings, shows it.
public struct HubSecret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    public init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// For those that are text, such as the secret of an access key.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    public var description: String { "(a secret)" }

    public var debugDescription: String { description }

    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
