import Tidemark

// A scope as bytes, in messages and in the store of who keeps a part. The numbers are frozen; a
// form or a condition that is not known is refused, since to leave it out would be another scope.
//
//   byte    form: 1
//   node    byte, then
//             1  keys       byte: 1 if there is a lower bound, + 2 if an upper; counted bytes each
//             2  field      varint n and n counted names; test
//             3  all        varint n and n nodes
//             4  any        varint n and n nodes
//             5  not        node
//   test    byte: 1 exists, 2 equals, 3 less, 4 at most, 5 greater, 6 at least, 7 contains, each of
//           2...7 with an operand; 8 begins with, and a counted text
//   operand byte: 0 null, 1 false, 2 true, 3 a number, as counted digits, 4 a counted text

extension SyncScope {
    private static let form: UInt8 = 1

    /// O(nodes). Two scopes are the same if they are the same bytes.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.put(Self.form)
        node.write(to: &writer)
        return writer.bytes
    }

    /// - Throws: `badMessage` for anything but a whole scope within its limits.
    init(decoding bytes: [UInt8]) throws(SyncError) {
        guard bytes.count <= Self.bytesMax else {
            throw .badMessage("a scope of \(bytes.count) bytes exceeds \(Self.bytesMax)")
        }
        var reader = ByteReader(bytes)
        guard try reader.takeByte() == Self.form else {
            throw reader.failure("a scope of an unknown form; update this side")
        }
        node = try Node(from: &reader, depth: 1)
        try reader.finish()
    }

    /// - Throws: `invalidArgument` if it is beyond its limits.
    func checkBounds() throws(StoreError) {
        let depth = node.depth
        guard depth <= Self.depthMax else {
            throw StoreError(
                .invalidArgument,
                "a scope with \(depth) conditions within each other; at most \(Self.depthMax)")
        }
        let count = encoded.count
        guard count <= Self.bytesMax else {
            throw StoreError(
                .invalidArgument, "a scope of \(count) bytes; at most \(Self.bytesMax)")
        }
    }
}

extension SyncScope.Node {
    var depth: Int {
        switch self {
        case .keys, .field: 1
        case .all(let parts), .any(let parts): 1 + (parts.map(\.depth).max() ?? 0)
        case .not(let part): 1 + part.depth
        }
    }

    fileprivate func write(to writer: inout ByteWriter) {
        switch self {
        case .keys(let range):
            writer.put(1)
            writer.put((range.lowerBound != nil ? 1 : 0) | (range.upperBound != nil ? 2 : 0))
            if let bound = range.lowerBound { writer.putBytes(bound) }
            if let bound = range.upperBound { writer.putBytes(bound) }
        case .field(let path, let test):
            writer.put(2)
            writer.putCount(path.names.count)
            for name in path.names { writer.putText(name) }
            test.write(to: &writer)
        case .all(let parts):
            writer.put(3)
            writer.putCount(parts.count)
            for part in parts { part.write(to: &writer) }
        case .any(let parts):
            writer.put(4)
            writer.putCount(parts.count)
            for part in parts { part.write(to: &writer) }
        case .not(let part):
            writer.put(5)
            part.write(to: &writer)
        }
    }

    fileprivate init(from reader: inout ByteReader, depth: Int) throws(SyncError) {
        guard depth <= SyncScope.depthMax else {
            throw reader.failure("more than \(SyncScope.depthMax) conditions within each other")
        }
        switch try reader.takeByte() {
        case 1:
            let bounds = try reader.takeByte()
            guard bounds <= 3 else { throw reader.failure("\(bounds) are no bounds of keys") }
            let lower = try bounds & 1 != 0 ? Self.takeBound(&reader) : nil
            let upper = try bounds & 2 != 0 ? Self.takeBound(&reader) : nil
            self = .keys(KeyRange(from: lower, upTo: upper))
        case 2:
            var names: [String] = []
            for _ in 0..<(try reader.takeCount(of: "names")) {
                names.append(try reader.takeText("name", max: SyncScope.bytesMax))
            }
            self = .field(JSONPath(names), try SyncScope.Test(from: &reader))
        case 3: self = .all(try Self.takeParts(&reader, depth: depth))
        case 4: self = .any(try Self.takeParts(&reader, depth: depth))
        case 5: self = .not(try SyncScope.Node(from: &reader, depth: depth + 1))
        case let other:
            throw reader.failure("\(other) is no condition of a scope; update this side")
        }
    }

    private static func takeBound(_ reader: inout ByteReader) throws(SyncError) -> [UInt8] {
        try reader.takeBytes("a bound", max: SyncScope.bytesMax)
    }

    private static func takeParts(
        _ reader: inout ByteReader, depth: Int
    ) throws(SyncError) -> [SyncScope.Node] {
        var parts: [SyncScope.Node] = []
        for _ in 0..<(try reader.takeCount(of: "conditions", bytesEach: 2)) {
            parts.append(try SyncScope.Node(from: &reader, depth: depth + 1))
        }
        return parts
    }
}

extension SyncScope.Test {
    fileprivate func write(to writer: inout ByteWriter) {
        switch self {
        case .exists: writer.put(1)
        case .equals(let operand): operand.write(after: 2, to: &writer)
        case .isLess(let operand): operand.write(after: 3, to: &writer)
        case .isAtMost(let operand): operand.write(after: 4, to: &writer)
        case .isGreater(let operand): operand.write(after: 5, to: &writer)
        case .isAtLeast(let operand): operand.write(after: 6, to: &writer)
        case .contains(let operand): operand.write(after: 7, to: &writer)
        case .hasPrefix(let prefix):
            writer.put(8)
            writer.putText(prefix)
        }
    }

    fileprivate init(from reader: inout ByteReader) throws(SyncError) {
        switch try reader.takeByte() {
        case 1: self = .exists
        case 2: self = .equals(try SyncScope.Operand(from: &reader))
        case 3: self = .isLess(than: try SyncScope.Operand(from: &reader))
        case 4: self = .isAtMost(try SyncScope.Operand(from: &reader))
        case 5: self = .isGreater(than: try SyncScope.Operand(from: &reader))
        case 6: self = .isAtLeast(try SyncScope.Operand(from: &reader))
        case 7: self = .contains(try SyncScope.Operand(from: &reader))
        case 8: self = .hasPrefix(try reader.takeText("prefix", max: SyncScope.bytesMax))
        case let other:
            throw reader.failure("\(other) is no test of a field; update this side")
        }
    }
}

extension SyncScope.Operand {
    fileprivate func write(after test: UInt8, to writer: inout ByteWriter) {
        writer.put(test)
        switch self {
        case .null: writer.put(0)
        case .bool(let value): writer.put(value ? 2 : 1)
        case .number(let number):
            writer.put(3)
            writer.putText(number.digits)
        case .text(let text):
            writer.put(4)
            writer.putText(text)
        }
    }

    fileprivate init(from reader: inout ByteReader) throws(SyncError) {
        switch try reader.takeByte() {
        case 0: self = .null
        case 1: self = .bool(false)
        case 2: self = .bool(true)
        case 3:
            let digits = try reader.takeText("number", max: SyncScope.bytesMax)
            guard let number = JSONNumber(digits) else {
                throw reader.failure("what should be a number is none")
            }
            self = .number(number)
        case 4: self = .text(try reader.takeText("text", max: SyncScope.bytesMax))
        case let other:
            throw reader.failure("\(other) is no operand; update this side")
        }
    }
}
