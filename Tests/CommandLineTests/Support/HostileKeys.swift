/// Keys that a careless program would trip over.
enum HostileKeys {
    /// Clears the screen, sets the title, forges a line, turns the reading direction, fakes an
    /// escape, is not UTF-8, is zero, is wide, is long.
    static let all: [[UInt8]] = [
        Array("\u{1B}[2J\u{1B}]0;owned\u{07}".utf8),
        Array("line\ntidemark: all whole\r".utf8),
        Array("\u{202E}gnp.exe\u{2069}".utf8),
        Array(#"\x1b[31m"#.utf8),
        Array("\u{9B}31m".utf8),
        [0xFF, 0xFE, 0x00],
        [0xC3],
        [0x00],
        Array("漢字テスト🙂e\u{301}".utf8),
        [UInt8](repeating: UInt8(ascii: "k"), count: 3_000),
    ]
}
