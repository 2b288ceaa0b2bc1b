/// A place in a JSON document: the names of members from the outside in. Written as a JSON Pointer
/// (RFC 6901): `/address/city`, and the empty text for the whole document.
///
/// Elements of lists have no paths: a merge moves them.
public struct JSONPath: Hashable, Sendable {
    public let names: [String]

    public init(_ names: [String] = []) {
        self.names = names
    }

    /// The whole document.
    public static let whole = JSONPath()
}

extension JSONPath: LosslessStringConvertible {
    /// Reads a JSON Pointer; nil if it is none.
    public init?(_ pointer: String) {
        guard !pointer.isEmpty else {
            self.init([])
            return
        }
        guard pointer.utf8.first == UInt8(ascii: "/") else { return nil }
        var names: [String] = []
        for part in pointer.utf8.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        {
            guard let name = Self.unescaped(part) else { return nil }
            names.append(name)
        }
        self.init(names)
    }

    public var description: String {
        var bytes: [UInt8] = []
        for name in names {
            bytes.append(UInt8(ascii: "/"))
            for byte in name.utf8 {
                switch byte {
                case UInt8(ascii: "~"): bytes.append(contentsOf: "~0".utf8)
                case UInt8(ascii: "/"): bytes.append(contentsOf: "~1".utf8)
                default: bytes.append(byte)
                }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unescaped(_ part: some Sequence<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var isEscaped = false
        for byte in part {
            if isEscaped {
                guard byte == UInt8(ascii: "0") || byte == UInt8(ascii: "1") else { return nil }
                bytes.append(byte == UInt8(ascii: "0") ? UInt8(ascii: "~") : UInt8(ascii: "/"))
                isEscaped = false
            } else if byte == UInt8(ascii: "~") {
                isEscaped = true
            } else {
                bytes.append(byte)
            }
        }
        return isEscaped ? nil : String(decoding: bytes, as: UTF8.self)
    }
}

extension JSONPath: ExpressibleByArrayLiteral {
    public init(arrayLiteral names: String...) {
        self.init(names)
    }
}
