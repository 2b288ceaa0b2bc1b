/// Names of the numbered files of a store, and paths.
enum FileName {
    static func log(_ number: UInt64) -> String { padded(number) + ".log" }

    static func sealed(_ number: UInt64) -> String { padded(number) + ".seg" }

    static func values(_ number: UInt64) -> String { padded(number) + ".val" }

    /// What has come of a segment that a peer gives out as it lies there.
    static func part(_ number: UInt64) -> String { padded(number) + ".part" }

    /// Of what a part is, and how far it goes.
    static func origin(ofPart number: UInt64) -> String { padded(number) + ".from" }

    /// A value file lies in the directory of the segments that name it.
    static func values(_ number: UInt64, besideSegmentAt path: String) -> String {
        "\(parent(of: path))/\(values(number))"
    }

    /// The directory that a file or directory lies in.
    static func parent(of path: String) -> String {
        var path = Substring(path)
        while path.count > 1, path.hasSuffix("/") { path = path.dropLast() }
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The last part of a path.
    static func last(of path: String) -> String {
        String(path.split(separator: "/").last ?? "")
    }

    /// The number in a name of that ending; nil for any other file.
    static func number(in name: String, ending: String) -> UInt64? {
        guard name.hasSuffix(ending) else { return nil }
        let digits = name.dropLast(ending.count)
        guard digits.count >= 6, digits.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else {
            return nil
        }
        return UInt64(digits).flatMap { $0 <= Limits.countMax ? $0 : nil }
    }

    private static func padded(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }
}
