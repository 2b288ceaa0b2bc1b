/// Text for an HTML page. Nothing from a store gets into a page by another way.
enum HTMLText {
    /// Shown as on a terminal, control and bidirectional characters as escapes, and with every
    /// character that means something to HTML as a reference.
    static func escaped(_ text: String, charactersMax: Int = 80) -> String {
        marked(TerminalText.escaped(text, columnsMax: charactersMax))
    }

    /// Text of our own, in which nothing needs to be shown as an escape.
    static func marked(_ text: String) -> String {
        var marked = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": marked += "&amp;"
            case "<": marked += "&lt;"
            case ">": marked += "&gt;"
            case "\"": marked += "&quot;"
            case "'": marked += "&#39;"
            default: marked.unicodeScalars.append(scalar)
            }
        }
        return marked
    }
}
