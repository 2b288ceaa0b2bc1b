import Tidemark

// What one answer about a part may cost whoever gives it. The asker chooses the scope, and a scope
// that nothing belongs to has every change looked at and nothing sent: no bound of a page would
// ever be met. So the bounds are of what is looked at, and of a scope that is dearer to evaluate
// fewer changes are looked at and fewer values read:
//
//   changes * bytes of the scopes    <= 65,536 * 256   each condition is evaluated for each change
//   value bytes * conditions on them <= 32 MiB * 8     each may go through the whole value
//
// The asker asks on behind what was looked at.

/// How far one answer may go in evaluating some scopes.
struct ScopeBudget: Hashable, Sendable {
    /// Changes that are passed over or evaluated, at least 1.
    let changesMax: Int
    /// Bytes of values that are read before the last one, at least 1.
    let valueBytesMax: Int

    init(_ scopes: SyncScope?...) {
        let scopes = scopes.compactMap { $0 }
        let bytes = scopes.reduce(0) { $0 + $1.encoded.count }
        let fields = scopes.reduce(0) { $0 + $1.node.fieldCount }
        changesMax = Self.share(
            of: SyncLimits.scopedChangesMax, for: bytes, each: SyncLimits.scopeBytesPerChange)
        valueBytesMax = Self.share(
            of: SyncLimits.scopedValueBytesMax, for: fields, each: SyncLimits.scopeFieldsPerValue)
    }

    /// All of it up to a cost, and in proportion less beyond that.
    private static func share(of total: Int, for cost: Int, each usual: Int) -> Int {
        max(1, cost > usual ? total / ((cost + usual - 1) / usual) : total)
    }
}

extension SyncScope.Node {
    /// Conditions on the value.
    fileprivate var fieldCount: Int {
        switch self {
        case .keys: 0
        case .field: 1
        case .all(let parts), .any(let parts): parts.reduce(0) { $0 + $1.fieldCount }
        case .not(let part): part.fieldCount
        }
    }
}
