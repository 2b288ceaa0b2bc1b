import Glibc

/// Comparisons of byte strings in C: the generic ones of the standard library take most of a
/// test's time when it is compiled without optimisation.
package enum Bytes {
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else {
                    return true
                }
                return unsafe memcmp(leftBase, rightBase, left.count) == 0
            }
        }
    }

    package static func areEqual(_ left: [UInt8]?, _ right: [UInt8]?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): areEqual(left, right)
        default: false
        }
    }

    /// The order of keys: bytes as unsigned numbers, a prefix before what it begins.
    package static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let shared = min(left.count, right.count)
        let order = unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right -> Int32 in
                guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else {
                    return 0
                }
                return unsafe memcmp(leftBase, rightBase, shared)
            }
        }
        return order != 0 ? order < 0 : left.count < right.count
    }

    /// Short enough for a message: text where it is text, and never more than a few bytes.
    package static func summary(_ bytes: [UInt8]?) -> String {
        guard let bytes else { return "nothing" }
        let head = bytes.prefix(24)
        let isText = head.allSatisfy { (0x20..<0x7F).contains($0) }
        let shown =
            isText
            ? "\"" + String(decoding: head, as: UTF8.self) + "\""
            : head.map { String($0, radix: 16) }.joined(separator: " ")
        return head.count < bytes.count ? "\(shown)... (\(bytes.count) bytes)" : shown
    }
}
