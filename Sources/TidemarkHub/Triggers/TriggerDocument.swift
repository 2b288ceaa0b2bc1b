import TidemarkSync

/// A record as a trigger wants it.
struct TriggerOutput: Hashable, Sendable {
    let key: String
    /// nil if it is to be removed.
    let value: String?
}

/// What a trigger at an endpoint is sent, and what it answers: Cognito's event, version 2.
enum TriggerDocument {
    /// All records of the dataset, each as an object, those that are new or were removed too.
    static func input(
        _ records: [TriggerRecord], _ context: UpdateContext, region: String
    ) -> [UInt8] {
        let members = records.map { record -> (String, JSONValue) in
            let value = JSONObject([
                ("oldValue", text(record.oldValue)),
                ("newValue", text(record.newValue)),
                ("op", JSONValue.string(record.newValue == nil ? "remove" : "replace")),
            ])
            return (record.key, JSONValue.object(value))
        }
        let document = JSONObject([
            ("version", JSONValue.number(JSONNumber(2))),
            ("eventType", JSONValue.string("SyncTrigger")),
            ("region", JSONValue.string(region)),
            ("identityPoolId", JSONValue.string(context.pool.text)),
            ("identityId", JSONValue.string(context.identity.text)),
            ("datasetName", JSONValue.string(context.dataset.text)),
            ("datasetRecords", JSONValue.object(JSONObject(members))),
        ])
        return JSONValue.object(document).encoded
    }

    /// - Throws: `invalidTriggerOutput` for what has not the shape of the event.
    static func output(_ answer: [UInt8]) throws(APIFailure) -> [TriggerOutput] {
        let document: JSONValue
        do throws(JSONError) {
            document = try JSONValue(parsing: answer)
        } catch {
            throw invalid("is not JSON: \(error)")
        }
        guard case .object(let records)? = document["datasetRecords"] else {
            throw invalid("has no object datasetRecords")
        }
        var output: [TriggerOutput] = []
        for member in records.members {
            output.append(try record(member.name, member.value))
        }
        return output
    }

    private static func record(
        _ key: String, _ value: JSONValue
    ) throws(APIFailure) -> TriggerOutput {
        switch (value, value["op"]?.text, value["newValue"]) {
        case (.null, _, _), (.object, "remove"?, _):
            return TriggerOutput(key: key, value: nil)
        case (.object, "replace"?, .string(let text)?), (.object, nil, .string(let text)?):
            return TriggerOutput(key: key, value: text)
        default:
            throw invalid(
                "has a record that is neither null nor an object whose op is replace, with a "
                    + "newValue, or remove")
        }
    }

    private static func invalid(_ problem: String) -> APIFailure {
        APIFailure(.invalidTriggerOutput, "the sync trigger's answer \(problem)")
    }

    private static func text(_ text: String?) -> JSONValue {
        text.map { .string($0) } ?? .null
    }
}
