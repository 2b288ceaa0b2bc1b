import Crypto
import Glibc
import NIOPosix
import Tidemark
import TidemarkSync

/// What was changed at the console: a file in the store's directory to which lines are appended and
/// nothing else is done. Each line is an object of JSON, and on disk before the edit is made.
final class ConsoleAudit: Sendable {
    static let fileName = HubFiles.consoleAudit

    /// A line.
    struct Entry: Sendable {
        enum State: String, Sendable {
            case asked
            case done
            case refused
        }

        /// The same for all lines of an edit.
        let id: String
        /// Milliseconds since 1970.
        let time: UInt64
        let action: ConsoleOperation
        /// By the beginning of its digest.
        let session: String
        let address: String?
        var state = State.asked
        /// Why it was refused.
        var code: String?
        private var dataset: String?
        private var reference: RecordReference?
        private var device: String?
        private var identity: String?
        private var valueBytes: Int?
        private var resolution: String?

        init(_ edit: ConsoleEdit, _ call: ConsoleCall, id: String, now: UInt64) {
            self.id = id
            time = now
            action = call.operation
            session = call.session.name
            address = call.address
            switch edit {
            case .record(let edit):
                dataset = edit.dataset
                reference = edit.reference
                valueBytes = edit.value?.count
            case .conflict(let edit):
                dataset = edit.dataset
                reference = edit.reference
                switch edit.resolution {
                case .keepLocal: resolution = "keepLocal"
                case .keepRemote: resolution = "keepRemote"
                case .delete: resolution = "delete"
                case .stop: resolution = "stop"
                case .value(let value):
                    resolution = "value"
                    valueBytes = value.count
                }
            case .device(let device, let identity):
                self.device = device.text
                self.identity = identity.text
            }
        }

        /// No value is in it: what a record holds is not for every reader of the file.
        var encoded: [UInt8] {
            var answer = JSONAnswer()
            answer.open("{")
            answer.add("id", text: id)
            answer.add("time", time)
            answer.add("state", text: state.rawValue)
            answer.add("action", text: action.rawValue)
            if let dataset { answer.add("dataset", text: dataset) }
            switch reference {
            case .key(let key)?:
                answer.add("key", shown: key, bytesMax: ConsoleLimits.shownBytes)
            case .position(let count)?: answer.add("count", count)
            case nil: break
            }
            if let identity { answer.add("identity", text: identity) }
            if let device { answer.add("device", text: device) }
            if let valueBytes { answer.add("valueBytes", valueBytes) }
            if let resolution { answer.add("resolution", text: resolution) }
            if let code { answer.add("code", text: code) }
            answer.add("session", text: session)
            if let address { answer.add("address", text: address) }
            answer.close("}")
            return answer.bytes
        }
    }

    private let path: String
    private let target: FileTarget

    init(path: String) {
        self.path = path
        target = FileTarget(path: path)
    }

    static func drawnID() -> String {
        let drawn = HMAC<SHA256>.authenticationCode(
            for: [UInt8](), using: SymmetricKey(size: .bits256))
        return Digests.hexadecimal(Array(Array(drawn).prefix(8)))
    }

    /// Returns when the line is on disk.
    ///
    /// - Throws: `serviceUnavailable`.
    func note(_ entry: Entry) async throws(APIFailure) {
        do {
            try await target.deliver(entry.encoded, delivery: entry.id)
        } catch {
            throw APIFailure(
                .serviceUnavailable,
                "the audit file cannot be written, so nothing is changed; see to the hub's disk",
                retryAfterSeconds: 30)
        }
    }

    // MARK: - Reading

    /// Lines with what is needed to read on.
    private struct Page: Sendable {
        /// The newest first.
        var lines: [(offset: UInt64, bytes: [UInt8])] = []
        /// Of the first byte that was read; 0 if nothing is before it.
        var start: UInt64 = 0
    }

    /// The newest lines before a place in the file, at most ``ConsoleLimits/rowsMax`` of them and
    /// of the last ``ConsoleLimits/auditBytesMax`` bytes before it.
    ///
    /// - Throws: `serviceUnavailable` if it cannot be read.
    func answer(before end: UInt64) async throws(APIFailure) -> [UInt8] {
        let path = path
        let found: Page?
        do {
            found = try await NIOThreadPool.singleton.runIfActive { Self.page(path, before: end) }
        } catch {
            found = nil
        }
        guard let page = found else {
            throw APIFailure(
                .serviceUnavailable, "the audit file cannot be read; see to the hub's disk",
                retryAfterSeconds: 30)
        }
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "rows")
        var next = page.start
        for (index, line) in page.lines.enumerated() {
            guard index < ConsoleLimits.rowsMax else {
                next = page.lines[index - 1].offset
                break
            }
            // What a crash has cut off is no entry.
            guard (try? JSONValue(parsing: line.bytes)) != nil else { continue }
            answer.add(json: line.bytes)
        }
        answer.close("]")
        if next > 0 { answer.add("next", next) }
        answer.close("}")
        return answer.bytes
    }

    /// nil if the file cannot be read; empty if there is none yet.
    private static func page(_ path: String, before end: UInt64) -> Page? {
        // The path's bytes live for the call.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT ? Page() : nil }
        defer { close(descriptor) }
        let size = lseek(descriptor, 0, SEEK_END)
        guard size >= 0 else { return nil }
        let last = Int(min(UInt64(size), end))
        let first = max(0, last - ConsoleLimits.auditBytesMax)
        guard let bytes = read(descriptor, first..<last) else { return nil }
        return page(of: bytes, at: first)
    }

    private static func read(_ descriptor: Int32, _ range: Range<Int>) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: range.count)
        var filled = 0
        while filled < range.count {
            // What is left of the array is what may be filled.
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                return unsafe pread(
                    descriptor, rest.baseAddress, rest.count, range.lowerBound + filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            filled += count
        }
        return bytes
    }

    private static func page(of bytes: [UInt8], at first: Int) -> Page {
        var page = Page()
        var start = 0
        if first > 0 {
            // A line that began before is told with the page before.
            start = (bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count - 1) + 1
        }
        page.start = UInt64(first > 0 ? first + start : 0)
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            if end > start {
                page.lines.append((UInt64(first + start), Array(bytes[start..<end])))
            }
            start = end + 1
        }
        page.lines.reverse()
        return page
    }
}
