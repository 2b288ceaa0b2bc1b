import FoundationEssentials

/// Reads what requests bring in their bodies.
enum APICoding {
    /// - Parameter body: by the operation, whatever content type it claims to have; empty stands
    ///   for an object without members.
    /// - Throws: `serialization` naming the member at fault.
    static func decode<Body: Decodable>(
        _ type: Body.Type, from body: [UInt8]
    ) throws(APIFailure) -> Body {
        try JSONBounds.check(body)
        let text = body.isEmpty ? Array("{}".utf8) : body
        do {
            return try JSONDecoder().decode(type, from: Data(text))
        } catch let error as DecodingError {
            throw APIFailure(.serialization, message(of: error))
        } catch {
            throw APIFailure(.serialization, Self.noJSON)
        }
    }

    /// The decoder does not always say which number it could not take, or that it was a number.
    private static let noJSON =
        "the body is not JSON, or a number in it is none that the API takes; send an object"

    private static func message(of error: DecodingError) -> String {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "\(member(context.codingPath)) is not of the type that the API gives it"
        case .keyNotFound(let key, let context):
            "\(member(context.codingPath + [key])) is missing"
        case .dataCorrupted(let context) where !context.codingPath.isEmpty:
            "\(member(context.codingPath)) does not have the form that the API gives it"
        default:
            noJSON
        }
    }

    /// As in `RecordPatches[3].Key`.
    private static func member(_ path: [any CodingKey]) -> String {
        var text = ""
        for key in path {
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return text.isEmpty ? "the body" : text
    }
}
