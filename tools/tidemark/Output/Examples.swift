/// The part of a command's help that shows it at work.
enum Examples {
    /// A section to be put behind a discussion, a line for each example.
    ///
    /// Lines that would not fit 80 columns are an author's mistake, which a test finds.
    static func section(_ lines: [String]) -> String {
        "\n\nEXAMPLES:\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }
}
