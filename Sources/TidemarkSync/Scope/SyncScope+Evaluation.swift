import Tidemark

// Evaluation: first by the key alone, where the answer may be that the value decides, then with
// the value. The key alone says what can be passed over in silence, and who may have had a record
// that is deleted now.

extension SyncScope {
    /// Whether a live record belongs to the scope. O(nodes + bytes of the value).
    public func matches(key: [UInt8], value: [UInt8]) -> Bool {
        if let known = verdict(onKey: key) { return known }
        // Not JSON: no field passes any test.
        let document = try? JSONValue(parsing: value)
        let verdict = node.verdict(on: key) { path, test in
            document?.member(at: path).map(test.isPassed(by:)) ?? false
        }
        return verdict ?? false
    }

    /// Whether records with this key belong to it, whatever their values; nil if the value decides.
    func verdict(onKey key: [UInt8]) -> Bool? {
        node.verdict(on: key) { _, _ in nil }
    }

    /// Whether it keeps a record: a tombstone if the record might have belonged to it.
    func keeps(_ record: Record) -> Bool {
        guard let value = record.value else { return verdict(onKey: record.key) != false }
        return matches(key: record.key, value: value)
    }

    /// A range outside of which no key belongs to it. O(nodes).
    var keyRange: KeyRange { node.keyRange }
}

extension SyncScope.Node {
    /// Kleene's logic of three values: nil is unknown.
    func verdict(
        on key: [UInt8], _ field: (JSONPath, SyncScope.Test) -> Bool?
    ) -> Bool? {
        switch self {
        case .keys(let range): return range.contains(key)
        case .field(let path, let test): return field(path, test)
        case .all(let parts):
            var verdict: Bool? = true
            for part in parts {
                guard let known = part.verdict(on: key, field) else {
                    verdict = nil
                    continue
                }
                if !known { return false }
            }
            return verdict
        case .any(let parts):
            var verdict: Bool? = false
            for part in parts {
                guard let known = part.verdict(on: key, field) else {
                    verdict = nil
                    continue
                }
                if known { return true }
            }
            return verdict
        case .not(let part):
            return part.verdict(on: key, field).map { !$0 }
        }
    }

    var keyRange: KeyRange {
        switch self {
        case .keys(let range): range
        case .field, .not: .all
        case .all(let parts): parts.reduce(.all) { $0.intersection($1.keyRange) }
        case .any(let parts): KeyRange(around: parts.map(\.keyRange))
        }
    }
}

extension KeyRange {
    /// The least range that holds all of the others; an empty one if they are.
    fileprivate init(around ranges: [KeyRange]) {
        let ranges = ranges.filter { !$0.isEmpty }
        guard let first = ranges.first else {
            self.init(upTo: [])
            return
        }
        var lower = first.lowerBound
        var upper = first.upperBound
        for range in ranges.dropFirst() {
            if let bound = lower {
                lower = range.lowerBound.map {
                    $0.lexicographicallyPrecedes(bound) ? $0 : bound
                }
            }
            if let bound = upper {
                upper = range.upperBound.map {
                    bound.lexicographicallyPrecedes($0) ? $0 : bound
                }
            }
        }
        self.init(from: lower, upTo: upper)
    }
}

// MARK: - Scopes within each other

extension SyncScope {
    /// Whether every record that belongs to another scope belongs to this one, as far as their
    /// forms show it: false says nothing. Looks at no more than 1,024 pairs of conditions, whoever
    /// made them.
    func surelyHolds(_ other: SyncScope) -> Bool {
        var pairsLeft = 1_024
        return node.surelyHolds(other.node, &pairsLeft)
    }
}

extension SyncScope.Node {
    /// Conditions are compared as they stand: of two on a field only equal ones are known to hold
    /// each other, and negations are not looked into.
    fileprivate func surelyHolds(_ other: SyncScope.Node, _ pairsLeft: inout Int) -> Bool {
        guard pairsLeft > 0 else { return false }
        pairsLeft -= 1
        if other.keyRange.isEmpty { return true }
        // By their bytes: texts that are canonically equivalent are equal, and select otherwise.
        if SyncScope(self).encoded == SyncScope(other).encoded { return true }
        // First what can be taken apart without losing anything.
        if case .all(let parts) = self {
            return parts.allSatisfy { $0.surelyHolds(other, &pairsLeft) }
        }
        if case .any(let parts) = other {
            return parts.allSatisfy { surelyHolds($0, &pairsLeft) }
        }
        if case .keys(let range) = self {
            let theirs = other.keyRange
            return theirs.intersection(range) == theirs
        }
        if case .any(let parts) = self,
            parts.contains(where: { $0.surelyHolds(other, &pairsLeft) })
        {
            return true
        }
        guard case .all(let parts) = other else { return false }
        return parts.contains { surelyHolds($0, &pairsLeft) }
    }
}

// MARK: - Fields

extension JSONValue {
    /// What lies at a path; nil if there is nothing.
    fileprivate func member(at path: JSONPath) -> JSONValue? {
        var value = self
        for name in path.names {
            guard let member = value[name] else { return nil }
            value = member
        }
        return value
    }

    fileprivate func equals(_ operand: SyncScope.Operand) -> Bool {
        order(to: operand).map { $0 == 0 } ?? false
    }

    /// Negative, 0 or positive; nil if they are of different kinds. Of truths and of nothing there
    /// is no order but whether they are equal.
    fileprivate func order(to operand: SyncScope.Operand) -> Int? {
        switch (self, operand) {
        case (.null, .null): 0
        case (.bool(let own), .bool(let other)): own == other ? 0 : nil
        case (.number(let own), .number(let other)):
            DecimalNumber(own).order(to: DecimalNumber(other))
        case (.string(let own), .text(let other)): own.byteOrder(to: other)
        default: nil
        }
    }
}

extension SyncScope.Test {
    fileprivate func isPassed(by value: JSONValue) -> Bool {
        switch self {
        case .exists: true
        case .equals(let operand): value.equals(operand)
        case .isLess(let operand): value.order(to: operand).map { $0 < 0 } ?? false
        case .isAtMost(let operand): value.order(to: operand).map { $0 <= 0 } ?? false
        case .isGreater(let operand): value.order(to: operand).map { $0 > 0 } ?? false
        case .isAtLeast(let operand): value.order(to: operand).map { $0 >= 0 } ?? false
        case .contains(let operand): value.holds(operand)
        case .hasPrefix(let prefix): value.text?.utf8.starts(with: prefix.utf8) ?? false
        }
    }
}

extension JSONValue {
    fileprivate func holds(_ operand: SyncScope.Operand) -> Bool {
        switch (self, operand) {
        case (.array(let elements), _): elements.contains { $0.equals(operand) }
        case (.string(let text), .text(let part)): Array(text.utf8).holds(Array(part.utf8))
        default: false
        }
    }
}

extension String {
    /// By the bytes of their UTF-8: the same on every platform, and in no language.
    fileprivate func byteOrder(to other: String) -> Int {
        if utf8.elementsEqual(other.utf8) { return 0 }
        return utf8.lexicographicallyPrecedes(other.utf8) ? -1 : 1
    }
}

extension [UInt8] {
    /// Whether the other bytes stand somewhere among these. Knuth, Morris, Pratt (1977): O(n + m),
    /// since both come from elsewhere.
    fileprivate func holds(_ part: [UInt8]) -> Bool {
        guard !part.isEmpty else { return true }
        // For each beginning of the part the longest shorter one that it ends with.
        var borders = [0]
        var length = 0
        for index in part.indices.dropFirst() {
            while length > 0, part[index] != part[length] { length = borders[length - 1] }
            if part[index] == part[length] { length += 1 }
            borders.append(length)
        }
        length = 0
        for byte in self {
            while length > 0, byte != part[length] { length = borders[length - 1] }
            if byte == part[length] { length += 1 }
            if length == part.count { return true }
        }
        return false
    }
}
