/// What the sources declare as public: names of types and of what is in them, functions with the
/// labels of their parameters. It goes by the layout that the formatter gives: types and extensions
/// begin at the margin, one declaration a line.
struct PublicNames {
    private var types: Set<String> = []
    /// "Type.name" and "Type.name(label:)", by the type at the margin, however deep they are.
    private var members: Set<String> = []

    init(_ texts: [String]) {
        for text in texts { read(text) }
    }

    /// - Parameter name: "Type", "Type.member", "Type.Nested.member", "Type.function(label:)".
    func contains(_ name: String) -> Bool {
        let path = name.prefix { $0 != "(" }.split(separator: ".", omittingEmptySubsequences: false)
        guard let type = path.first, types.contains(String(type)) else { return false }
        for nested in path.dropFirst().dropLast()
        where !members.contains("\(type).\(nested)") { return false }
        guard path.count > 1, let last = path.last else { return true }
        return members.contains("\(type).\(last)\(name.drop { $0 != "(" })")
    }

    private mutating func read(_ text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var type = ""
        var isProtocol = false
        for (number, line) in lines.enumerated() {
            let code = line.drop(while: \.isWhitespace)
            guard !code.isEmpty, !code.hasPrefix("//") else { continue }
            let words = line.words
            if !(line.first?.isWhitespace ?? true) {
                guard let place = words.firstIndex(where: { Self.typeKinds.contains($0) }),
                    place + 1 < words.count
                else { continue }
                type = String(words[place + 1])
                isProtocol = words[place] == "protocol"
                if words.contains("public") { types.insert(type) }
                continue
            }
            guard words.contains("public") || isProtocol || code.hasPrefix("case "),
                let place = words.firstIndex(where: { Self.memberKinds.contains($0) })
            else { continue }
            let name = words[place] == "init" ? "init" : words.dropFirst(place + 1).first
            guard let name else { continue }
            let isCall = ["func", "init", "case"].contains(words[place])
            let labels = isCall ? Self.labels(behind: name, in: lines[number...]) : nil
            members.insert("\(type).\(name)\(labels.map { "(\($0))" } ?? "")")
            // Several cases in a line.
            guard words[place] == "case", labels == nil else { continue }
            for word in words.dropFirst(place + 2) { members.insert("\(type).\(word)") }
        }
    }

    private static let typeKinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "extension", "actor",
    ]

    private static let memberKinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "actor", "typealias", "func", "var", "let", "case",
        "init",
    ]

    /// The labels of the parameters that follow a name at once, such as "for:_:"; nil if there is
    /// no list of them.
    private static func labels(
        behind name: Substring, in lines: ArraySlice<Substring>
    ) -> String? {
        let text = lines.prefix(20).joined(separator: " ")
        guard let range = text.firstRange(of: "\(name)(") else { return nil }
        var labels = ""
        var parameter = ""
        var nesting = Nesting()
        for character in text[range.upperBound...] {
            if nesting.isOutside, character == ")" || character == "," {
                if !parameter.allSatisfy(\.isWhitespace) { labels += label(of: parameter) }
                guard character == "," else { return labels }
                parameter = ""
            } else {
                parameter.append(character)
                nesting.pass(character)
            }
        }
        return nil
    }

    private static func label(of parameter: String) -> String {
        var nesting = Nesting()
        let hasName = parameter.contains { character in
            nesting.pass(character)
            return character == ":" && nesting.isOutside
        }
        return hasName ? "\(Substring(parameter).words.first ?? "_"):" : "_:"
    }

    /// Whether a place in the code is outside of all brackets. Angle brackets are those that stand
    /// at once behind a name: no operators and no arrows.
    private struct Nesting {
        private var depth = 0
        private var angles = 0
        private var last: Character = " "

        var isOutside: Bool { depth == 0 && angles == 0 }

        mutating func pass(_ character: Character) {
            switch character {
            case "(", "[", "{": depth += 1
            case ")", "]", "}": depth -= 1
            case "<" where last.isLetter: angles += 1
            case ">" where last != "-" && angles > 0: angles -= 1
            default: break
            }
            last = character
        }
    }
}
