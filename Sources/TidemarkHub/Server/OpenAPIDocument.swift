/// What the hub answers, in the form OpenAPI 3.0.3: for those who generate clients or throw junk at
/// it. Made once, when the hub starts.
enum OpenAPIDocument {
    /// JSON.
    static func text() -> String {
        var paths: [String: [(method: String, operation: String)]] = [:]
        for operation in SyncOperation.allCases {
            paths[path(of: operation), default: []].append(
                (method: operation.method.lowercased(), operation: object(of: operation)))
        }
        for (path, method, operation) in ownOperations {
            paths[path, default: []].append((method: method, operation: operation))
        }
        let entries = paths.keys.sorted().map { path in
            let methods = (paths[path] ?? []).sorted { $0.method < $1.method }
                .map { "\(JSONText.quoted($0.method)):\($0.operation)" }
            return "\(JSONText.quoted(path)):{\(methods.joined(separator: ","))}"
        }
        return """
            {"openapi":"3.0.3","info":{"title":"Tidemark hub","version":"1",\
            "description":"Cognito Sync 2014-06-30, Cognito Identity, native sync."},\
            "paths":{\(entries.joined(separator: ","))},"components":{\(components)}}
            """
    }

    // MARK: Cognito Sync

    private static func path(of operation: SyncOperation) -> String {
        operation.pattern.map { segment in
            switch segment {
            case .fixed(let text): "/\(text)"
            case .pool: "/{IdentityPoolId}"
            case .identity: "/{IdentityId}"
            case .dataset: "/{DatasetName}"
            case .device: "/{DeviceId}"
            }
        }.joined()
    }

    private static func object(of operation: SyncOperation) -> String {
        var parameters = operation.pattern.compactMap(parameter(of:))
        parameters += queryParameters(of: operation)
        var members = [
            "\"operationId\":\(JSONText.quoted(operation.rawValue))",
            "\"tags\":[\"cognito-sync\"]",
            "\"security\":[\(securities(of: operation))]",
        ]
        if !parameters.isEmpty {
            members.append("\"parameters\":[\(parameters.joined(separator: ","))]")
        }
        if let body = body(of: operation) {
            members.append(
                "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":"
                    + "{\"schema\":\(body)}}}")
        }
        members.append("\"responses\":\(responses)")
        return "{\(members.joined(separator: ","))}"
    }

    /// Either of them is enough.
    private static func securities(of operation: SyncOperation) -> String {
        "{\"SigV4\":[]}" + (operation.tellsUsage ? ",{\"Bearer\":[]}" : "")
    }

    private static func parameter(of segment: SyncOperation.Segment) -> String? {
        switch segment {
        case .fixed: nil
        case .pool: pathParameter("IdentityPoolId", identifier)
        case .identity: pathParameter("IdentityId", identifier)
        case .dataset: pathParameter("DatasetName", datasetName)
        case .device:
            pathParameter(
                "DeviceId", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":256}")
        }
    }

    private static func pathParameter(_ name: String, _ schema: String) -> String {
        "{\"name\":\"\(name)\",\"in\":\"path\",\"required\":true,\"schema\":\(schema)}"
    }

    private static let identifier = #"""
        {"type":"string","minLength":1,"maxLength":55,"pattern":"^[\\w-]+:[0-9a-f-]+$"}
        """#
    private static let datasetName = #"""
        {"type":"string","minLength":1,"maxLength":128,"pattern":"^[a-zA-Z0-9_.:-]+$"}
        """#

    private static func queryParameters(of operation: SyncOperation) -> [String] {
        var names: [(String, String)] = []
        switch operation {
        case .listRecords:
            names = [
                ("lastSyncCount", "integer"), ("maxResults", "integer"), ("nextToken", "string"),
                ("syncSessionToken", "string"),
            ]
        case .listDatasets, .listIdentityPoolUsage:
            names = [("maxResults", "integer"), ("nextToken", "string")]
        default: break
        }
        return names.map { name, type in
            "{\"name\":\"\(name)\",\"in\":\"query\",\"schema\":{\"type\":\"\(type)\"}}"
        }
    }

    private static func body(of operation: SyncOperation) -> String? {
        switch operation {
        case .updateRecords: updateRecords
        case .registerDevice:
            """
            {"type":"object","required":["Platform","Token"],"properties":{"Platform":{"type":\
            "string","enum":["APNS","APNS_SANDBOX","GCM","ADM"]},"Token":{"type":"string"}}}
            """
        case .setCognitoEvents:
            """
            {"type":"object","required":["Events"],"properties":{"Events":{"type":"object",\
            "additionalProperties":{"type":"string","maxLength":2048}}}}
            """
        case .setIdentityPoolConfiguration:
            """
            {"type":"object","properties":{"PushSync":{"type":"object","properties":\
            {"ApplicationArns":{"type":"array","items":{"type":"string"}},"RoleArn":\
            {"type":"string"}}},"CognitoStreams":{"type":"object","properties":{"StreamName":\
            {"type":"string"},"RoleArn":{"type":"string"},"StreamingStatus":{"type":"string",\
            "enum":["ENABLED","DISABLED"]}}}}}
            """
        case .bulkPublish, .getBulkPublishDetails, .subscribeToDataset: "{\"type\":\"object\"}"
        case .deleteDataset, .describeDataset, .describeIdentityPoolUsage, .describeIdentityUsage,
            .getCognitoEvents, .getIdentityPoolConfiguration, .listDatasets,
            .listIdentityPoolUsage, .listRecords, .unsubscribeFromDataset:
            nil
        }
    }

    private static let updateRecords = """
        {"type":"object","required":["SyncSessionToken"],"properties":{"SyncSessionToken":\
        {"type":"string"},"DeviceId":{"type":"string","minLength":1,"maxLength":256},\
        "RecordPatches":{"type":"array","items":{"type":"object","required":["Op","Key",\
        "SyncCount"],"properties":{"Op":{"type":"string","enum":["replace","remove"]},\
        "Key":{"type":"string","minLength":1,"maxLength":1024},"Value":{"type":"string",\
        "maxLength":1048575},"SyncCount":{"type":"integer","format":"int64"},\
        "DeviceLastModifiedDate":{"type":"number"}}}}}}
        """

    // MARK: The rest

    private static let ownOperations: [(String, String, String)] = [
        ("/", "post", identityOperation),
        ("/health", "get", plain("Health", "application/json")),
        ("/health", "head", plain("HealthHead", nil)),
        ("/ready", "get", plain("Readiness", "application/json")),
        ("/ready", "head", plain("ReadinessHead", nil)),
        ("/metrics", "get", plain("Metrics", "text/plain", security: "Bearer")),
        ("/openapi.json", "get", plain("Description", "application/json")),
        ("/v1/push", "get", push),
        ("/v1/sync", "post", native("Sync")),
        ("/v1/watch", "post", native("Watch")),
    ]

    private static let identityOperation = """
        {"operationId":"CognitoIdentity","tags":["cognito-identity"],"parameters":[{"name":\
        "X-Amz-Target","in":"header","required":true,"schema":{"type":"string","enum":[\
        \(identityTargets)]}}],"security":[{},{"SigV4":[]}],"requestBody":{"required":true,\
        "content":{"application/x-amz-json-1.1":{"schema":{"type":"object"}}}},\
        "responses":\(responses)}
        """

    private static let identityTargets =
        IdentityOperation.allCases.map { JSONText.quoted($0.target) }.joined(separator: ",")

    /// - Parameter type: of the answer; nil if it has no body.
    private static func plain(
        _ name: String, _ type: String?, security: String? = nil
    ) -> String {
        let content = type.map { ",\"content\":{\"\($0)\":{}}" } ?? ""
        let guarded = security.map { "\"security\":[{\"\($0)\":[]}]," } ?? ""
        return "{\"operationId\":\"\(name)\",\(guarded)\"responses\":{\"200\":{\"description\":"
            + "\"as named\"\(content)},\"default\":\(refusal)}}"
    }

    private static let push = """
        {"operationId":"Push","security":[{"SigV4":[]}],"parameters":[{"name":"device","in":\
        "query","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":\
        "server-sent events","content":{"text/event-stream":{}}},"default":\(refusal)}}
        """

    private static func native(_ name: String) -> String {
        """
        {"operationId":"\(name)","security":[{"Bearer":[]}],"requestBody":{"required":true,\
        "content":{"application/x-tidemark-sync":{}}},"responses":{"200":{"description":\
        "a message of the sync protocol","content":{"application/x-tidemark-sync":{}}},\
        "default":\(refusal)}}
        """
    }

    private static let responses = """
        {"200":{"description":"the answer","content":{"application/json":{"schema":\
        {"type":"object"}}}},"default":{"description":"a failure by its name","content":\
        {"application/json":{"schema":{"$ref":"#/components/schemas/Failure"}}}}}
        """

    private static let refusal = """
        {"description":"a refusal","content":{"application/json":{"schema":\
        {"$ref":"#/components/schemas/Refusal"}}}}
        """

    private static let components = """
        "securitySchemes":{"SigV4":{"type":"apiKey","in":"header","name":"Authorization",\
        "description":"AWS Signature Version 4"},"Bearer":{"type":"http","scheme":"bearer"}},\
        "schemas":{"Failure":{"type":"object","required":["__type","message"],"properties":\
        {"__type":{"type":"string"},"message":{"type":"string"}}},"Refusal":{"type":"object",\
        "required":["error"],"properties":{"error":{"type":"object","required":["code",\
        "message"],"properties":{"code":{"type":"string"},"message":{"type":"string"}}}}}}
        """
}
