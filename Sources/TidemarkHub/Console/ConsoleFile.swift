/// A file of the console's page, as it was built into this program: `tools/embed-console` writes
/// the bytes of `Static` into `Embedded`, and a test says whether they are the same still.
struct ConsoleFile: Sendable {
    let name: String
    let bytes: [UInt8]

    /// - Parameter base64: of the bytes; a mistake in it is one of the tool, and traps.
    init(_ name: String, base64: String) {
        guard let bytes = Base64.decoded(base64) else {
            preconditionFailure("the embedded file \(name) is no base64")
        }
        self.name = name
        self.bytes = bytes
    }

    /// nil if there is none. O(1).
    static func named(_ name: String) -> ConsoleFile? { byName[name] }

    private static let byName = Dictionary(
        uniqueKeysWithValues: ConsoleFiles.all.map { ($0.name, $0) })

    var contentType: String {
        switch name.split(separator: ".").last ?? "" {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "svg": "image/svg+xml"
        default: "application/octet-stream"
        }
    }
}
