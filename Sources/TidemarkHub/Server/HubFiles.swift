/// Files of a hub in the directory of its store that are no part of the store.
package enum HubFiles {
    /// What was changed at the console, a line of JSON for each step.
    package static let consoleAudit = "console-audit.jsonl"
}
