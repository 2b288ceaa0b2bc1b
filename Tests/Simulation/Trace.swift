/// What happened, line by line, and a number that stands for all of it: two runs of one seed must
/// have the same.
package struct Trace: Sendable {
    /// FNV-1a (Fowler, Noll, Vo, 1991) over all lines, whether they are kept or not.
    package private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    package private(set) var lines: [String] = []
    package private(set) var lineCount = 0
    private let keepsLines: Bool

    init(keepsLines: Bool) {
        self.keepsLines = keepsLines
    }

    mutating func append(_ line: String) {
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash = (hash ^ 0x0A) &* 0x100_0000_01B3
        lineCount += 1
        if keepsLines { lines.append(line) }
    }

    /// Adds a line for a reader, which is no part of what happened.
    mutating func remark(_ line: String) {
        if keepsLines { lines.append(line) }
    }
}
