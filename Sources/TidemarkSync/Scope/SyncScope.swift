public import Tidemark

/// Which records of a dataset a replica keeps: a condition on key and value, as data, so that
/// whoever is asked for changes can evaluate it before anything is sent.
///
/// ```swift
/// let mine: SyncScope = .prefix("orders/2026-") && .field(["state"], .equals("open"))
/// try orders.setSyncScope(mine)
/// ```
///
/// A condition on a field looks at a value that is a JSON document. A value that is none, and a
/// document without the field, meet no such condition, and so they meet its negation. A tombstone
/// has no fields: it is sent to whoever could have the record by its key.
///
/// Prefer conditions on keys: whether a record meets them is known without reading its value, and
/// the others are passed over without being looked at. See <doc:PartialReplicas>.
public struct SyncScope: Hashable, Sendable {
    /// Bytes of a scope as it is stored and sent: 16 KiB, some hundred conditions.
    public static let bytesMax = 16 << 10
    /// Conditions within each other: evaluating one recurses as deep as that.
    public static let depthMax = 16

    /// Something that a field is compared with.
    public enum Operand: Hashable, Sendable {
        case null
        case bool(Bool)
        case number(JSONNumber)
        case text(String)
    }

    /// What is asked of a field. Numbers are compared by what they are worth, however they are
    /// written, and texts by the bytes of their UTF-8. Two things of different kinds are neither
    /// equal, nor is one of them less.
    public enum Test: Hashable, Sendable {
        /// There is one, whatever it holds.
        case exists
        case equals(Operand)
        case isLess(than: Operand)
        case isAtMost(Operand)
        case isGreater(than: Operand)
        case isAtLeast(Operand)
        /// A text that has the operand, a text, in it; or a list of which an element equals it.
        case contains(Operand)
        /// A text that begins with the operand.
        case hasPrefix(String)
    }

    indirect enum Node: Hashable, Sendable {
        case keys(KeyRange)
        case field(JSONPath, Test)
        /// Of none: everything.
        case all([Node])
        /// Of none: nothing.
        case any([Node])
        case not(Node)
    }

    let node: Node

    init(_ node: Node) {
        self.node = node
    }
}

extension SyncScope {
    /// Every record.
    public static let everything = SyncScope(.all([]))

    /// No record.
    public static let nothing = SyncScope(.any([]))

    /// Records with a key of the range.
    public static func keys(in range: KeyRange) -> SyncScope {
        SyncScope(.keys(range))
    }

    /// Records with a key that begins so.
    public static func prefix(_ prefix: [UInt8]) -> SyncScope {
        .keys(in: .prefix(prefix))
    }

    public static func prefix(_ prefix: String) -> SyncScope {
        .keys(in: .prefix(prefix))
    }

    /// Records with a JSON document as their value of which a field passes the test.
    public static func field(_ path: JSONPath, _ test: Test) -> SyncScope {
        SyncScope(.field(path, test))
    }

    public static func && (left: SyncScope, right: SyncScope) -> SyncScope {
        SyncScope(.all(left.conjuncts + right.conjuncts))
    }

    public static func || (left: SyncScope, right: SyncScope) -> SyncScope {
        SyncScope(.any(left.disjuncts + right.disjuncts))
    }

    public static prefix func ! (scope: SyncScope) -> SyncScope {
        SyncScope(.not(scope.node))
    }

    /// So that a long chain is no deeper than a short one.
    private var conjuncts: [Node] {
        if case .all(let parts) = node { parts } else { [node] }
    }

    private var disjuncts: [Node] {
        if case .any(let parts) = node { parts } else { [node] }
    }
}

extension SyncScope.Operand: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral
{
    public init(stringLiteral text: String) {
        self = .text(text)
    }

    public init(integerLiteral value: Int) {
        self = .number(JSONNumber(value))
    }

    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }
}
