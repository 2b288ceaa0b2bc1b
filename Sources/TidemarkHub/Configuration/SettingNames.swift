/// How settings are called, and what somebody meant who misspelled one.
enum SettingNames {
    /// What all variables of the environment that are settings begin with.
    static let variablePrefix = "TIDEMARK_"

    /// How the environment spells a setting: as `EnvironmentVariablesProvider` of
    /// swift-configuration does, with the prefix.
    static func variable(of key: String) -> String {
        var text = ""
        var isBehindLowercase = false
        for character in key {
            if isBehindLowercase, character.isUppercase { text.append("_") }
            text += character.isLetter || character.isNumber ? character.uppercased() : "_"
            isBehindLowercase = character.isLowercase
        }
        return variablePrefix + text
    }

    /// What is told at most, and of each name at most so much is compared.
    private static let toldMax = 3
    private static let comparedBytesMax = 200

    /// Names that somebody may have meant, the nearest first: those that a few letters make of it,
    /// and those that end alike but stand elsewhere. O(n · m) of the lengths of each pair.
    static func alike(_ name: String, among names: Set<String>) -> [String] {
        let last = name.split(separator: ".").last.map(String.init) ?? name
        let letters = Array(name.lowercased().utf8.prefix(comparedBytesMax))
        let editsMax = max(2, letters.count / 5)
        var found: [(edits: Int, name: String)] = []
        for other in names {
            let count = edits(letters, Array(other.lowercased().utf8.prefix(comparedBytesMax)))
            if count <= editsMax {
                found.append((edits: count, name: other))
            } else if other.hasSuffix(".\(last)") {
                found.append((edits: editsMax + 1, name: other))
            }
        }
        let sorted = found.sorted { ($0.edits, $0.name) < ($1.edits, $1.name) }
        return sorted.prefix(toldMax).map(\.name)
    }

    /// "; did you mean A or B?", or nothing.
    static func hint(_ names: [String]) -> String {
        names.isEmpty ? "" : "; did you mean \(names.joined(separator: " or "))?"
    }

    /// How many letters must be put in, taken out, changed, or swapped with the next one: the
    /// distance of optimal string alignment (Damerau 1964, by the rows of Wagner and Fischer 1974).
    static func edits(_ one: [UInt8], _ other: [UInt8]) -> Int {
        var before: [Int] = []
        var above = Array(0...other.count)
        for row in one.indices {
            var current = [row + 1]
            for column in other.indices {
                let change = above[column] + (one[row] == other[column] ? 0 : 1)
                var best = min(change, above[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, one[row] == other[column - 1],
                    one[row - 1] == other[column]
                {
                    best = min(best, before[column - 1] + 1)
                }
                current.append(best)
            }
            before = above
            above = current
        }
        return above[other.count]
    }
}
