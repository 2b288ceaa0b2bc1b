/// Keys and values as the page shows them: as text where they are text, in hexadecimal digits where
/// they are not, and no more than asked for.
///
/// They go as JSON has them; that they stay text is for the page to see to, which never takes
/// anything for markup.
struct ShownBytes: Hashable, Sendable {
    /// nil if what is shown is not UTF-8.
    let text: String?
    /// Of what is shown; empty if it is text.
    let hexadecimal: String
    /// Where what is shown begins among the bytes, and behind its last one.
    let start: Int
    let end: Int
    /// All bytes.
    let byteCount: Int

    /// - Parameters:
    ///   - offset: where to begin; moved on to the beginning of a character.
    ///   - bytesMax: how many to show at most, 4...
    init(_ bytes: [UInt8], from offset: Int = 0, bytesMax: Int) {
        byteCount = bytes.count
        let first = min(max(0, offset), bytes.count)
        let last = bytes.count - first > bytesMax ? first + bytesMax : bytes.count
        let window = Self.whole(bytes[first..<last], isBegun: first > 0, isCut: last < bytes.count)
        if let text = String(validating: window, as: UTF8.self) {
            self.text = text
            hexadecimal = ""
            (start, end) = (window.startIndex, window.endIndex)
        } else {
            text = nil
            hexadecimal = Digests.hexadecimal(Array(bytes[first..<last]))
            (start, end) = (first, last)
        }
    }

    var isCut: Bool { start > 0 || end < byteCount }

    /// Without what is cut off of a character of UTF-8 at either end.
    private static func whole(
        _ window: ArraySlice<UInt8>, isBegun: Bool, isCut: Bool
    ) -> ArraySlice<UInt8> {
        var window = window
        if isBegun {
            var dropped = 0
            while dropped < 3, let byte = window.first, byte & 0xC0 == 0x80 {
                window = window.dropFirst()
                dropped += 1
            }
        }
        guard isCut else { return window }
        for back in 1...3 where window.count >= back {
            let byte = window[window.endIndex - back]
            if byte & 0xC0 == 0x80 { continue }
            let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return length > back ? window.dropLast(back) : window
        }
        return window
    }

    /// As members of an object that is open.
    func write(to answer: inout JSONAnswer) {
        if let text {
            answer.add("text", text: text)
        } else {
            answer.add("hex", text: hexadecimal)
        }
        answer.add("bytes", byteCount)
        guard isCut else { return }
        answer.add("from", start)
        answer.add("to", end)
    }
}

extension JSONAnswer {
    /// A member that shows bytes: `{"text": …, "bytes": 3}`, or `hex`, with `from` and `to` if that
    /// is not all of them.
    mutating func add(_ name: String, shown bytes: [UInt8], from offset: Int = 0, bytesMax: Int) {
        open("{", as: name)
        ShownBytes(bytes, from: offset, bytesMax: bytesMax).write(to: &self)
        close("}")
    }
}
