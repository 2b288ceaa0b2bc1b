import Tidemark
import TidemarkSync

/// A change that somebody asks for at the console, checked as far as that can be without the store.
enum ConsoleEdit: Sendable {
    struct OfRecord: Sendable {
        let dataset: String
        let reference: RecordReference
        /// nil to delete it.
        let value: [UInt8]?
        /// The write that was seen; nil if there was no live record.
        let expected: Dot?
    }

    struct OfConflict: Sendable {
        let dataset: String
        let reference: RecordReference
        let resolution: Resolution
        /// The version that is here, as it was seen.
        let expected: Dot
    }

    case record(OfRecord)
    case conflict(OfConflict)
    case device(DeviceID, of: IdentityID)

    private struct Body: Decodable {
        let dataset: String?
        let id: String?
        /// Of a new record.
        let key: String?
        let value: String?
        let valueBase64: String?
        let at: String?
        let resolution: String?
        let identity: String?
        let device: String?
    }

    /// - Throws: `serialization`, `invalidParameter`, `resourceNotFound` for a dataset of the hub's
    ///   own.
    init(_ call: ConsoleCall) throws(APIFailure) {
        let body = try APICoding.decode(Body.self, from: call.body)
        switch call.operation {
        case .put:
            self = .record(
                OfRecord(
                    dataset: try ConsoleNames.dataset(body.dataset),
                    reference: try Self.reference(body), value: try Self.value(body),
                    expected: try body.at.map(ConsoleNames.dot)))
        case .delete:
            guard let at = body.at else { throw Self.missing("at") }
            self = .record(
                OfRecord(
                    dataset: try ConsoleNames.dataset(body.dataset),
                    reference: try Self.reference(body), value: nil,
                    expected: try ConsoleNames.dot(at)))
        case .resolve:
            guard let at = body.at else { throw Self.missing("at") }
            self = .conflict(
                OfConflict(
                    dataset: try ConsoleNames.dataset(body.dataset),
                    reference: try Self.reference(body),
                    resolution: try Self.resolution(body), expected: try ConsoleNames.dot(at)))
        case .revoke:
            guard let device = body.device.flatMap({ DeviceID($0) }) else {
                throw APIFailure(.invalidParameter, "device is missing, or no id of a device")
            }
            self = .device(device, of: try ConsoleNames.identity(body.identity))
        default:
            throw APIFailure(.unknownOperation, "the console has nothing of that name")
        }
    }

    /// By `id` for a record that is in a list, by `key` for one that is new.
    private static func reference(_ body: Body) throws(APIFailure) -> RecordReference {
        switch (body.id, body.key) {
        case (let id?, nil): return try RecordReference(id, called: "id")
        case (nil, let key?):
            guard (1...Limits.keyBytesMax).contains(key.utf8.count) else {
                throw APIFailure(
                    .invalidParameter, "key must have 1...\(Limits.keyBytesMax) bytes")
            }
            return .key(Array(key.utf8))
        default:
            throw APIFailure(.invalidParameter, "give id of a record, or key of a new one")
        }
    }

    private static func value(_ body: Body) throws(APIFailure) -> [UInt8] {
        switch (body.value, body.valueBase64) {
        case (let text?, nil): return Array(text.utf8)
        case (nil, let base64?):
            guard let bytes = Base64.decoded(base64) else {
                throw APIFailure(.invalidParameter, "valueBase64 is no base64")
            }
            return bytes
        default:
            throw APIFailure(.invalidParameter, "give value as text, or valueBase64")
        }
    }

    private static func resolution(_ body: Body) throws(APIFailure) -> Resolution {
        switch body.resolution {
        case "keepLocal": .keepLocal
        case "keepRemote": .keepRemote
        case "value": .value(try value(body))
        case "delete": .delete
        default:
            throw APIFailure(
                .invalidParameter,
                "resolution must be one of keepLocal, keepRemote, value, delete")
        }
    }

    private static func missing(_ name: String) -> APIFailure {
        APIFailure(.invalidParameter, "\(name) is missing; give the dot of what was shown")
    }
}
