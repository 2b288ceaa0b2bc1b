import Testing

@testable import tidemark

/// Expects the exit status and one line on standard error that holds the words.
func expectFailure(
    _ outcome: Outcome, _ status: CommandStatus, _ words: String...,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(outcome.status == status.rawValue, sourceLocation: sourceLocation)
    #expect(outcome.errors.hasPrefix("tidemark: "), sourceLocation: sourceLocation)
    #expect(
        outcome.errors.split(separator: "\n", omittingEmptySubsequences: false).count == 2,
        "not one line: \(outcome.errors)", sourceLocation: sourceLocation)
    for word in words {
        #expect(outcome.errors.contains(word), sourceLocation: sourceLocation)
    }
}

/// Expects text that cannot harm a terminal of 80 columns.
func expectSafeForTerminal(
    _ text: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    for line in text.split(separator: "\n") {
        #expect(TerminalText.width(of: String(line)) <= 80, sourceLocation: sourceLocation)
        let harmful = line.unicodeScalars.filter { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: true
            default: false
            }
        }
        #expect(harmful.isEmpty, "in \(line.debugDescription)", sourceLocation: sourceLocation)
    }
}

/// The text with what differs from run to run replaced: ids, dots, times.
func normalised(_ text: String) -> String {
    text
        .replacing(#/[0-9a-f]{32}/#, with: "REPLICA")
        .replacing(#/\b[0-9a-f]{8}:/#, with: "REPLICA:")
        .replacing(#/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(\+\d+)?/#, with: "TIME")
        .replacing(#/\d{4}-\d\d-\d\d/#, with: "DAY")
        .replacing(#/\d\d:\d\d:\d\d\.\d{3}(\+\d+)?/#, with: "TIME")
}
