import Testing

@testable import TidemarkHub

/// Signatures that others have published or made.
struct SigV4VectorTests {
    /// Of the published examples.
    static let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    static let published = "20150830T123600Z"
    static let publishedSeconds: Int64 = 1_440_938_160

    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        var method = "GET"
        var path = "/"
        var query = ""
        /// Beside host and x-amz-date.
        var headers: [(name: String, value: String)] = []
        var body = ""
        let signature: String

        var testDescription: String { name }
    }

    /// From the test suite that AWS published for Signature Version 4.
    static let suite = [
        Vector(
            name: "get-vanilla",
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Vector(
            name: "post-vanilla", method: "POST",
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Vector(
            name: "get-vanilla-query-order-key-case", query: "Param2=value2&Param1=value1",
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Vector(
            name: "get-vanilla-query-unreserved", query: "\(unreserved)=\(unreserved)",
            signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
        Vector(
            name: "get-utf8", path: "/\u{1234}",
            signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Vector(
            name: "get-header-value-trim",
            headers: [
                (name: "my-header1", value: " value1"),
                (name: "my-header2", value: " \"a   b   c\""),
            ],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Vector(
            name: "get-header-key-duplicate",
            headers: [
                (name: "my-header1", value: "value2"), (name: "my-header1", value: "value2"),
                (name: "my-header1", value: "value1"),
            ],
            signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
        Vector(
            name: "post-x-www-form-urlencoded", method: "POST",
            headers: [(name: "content-type", value: "application/x-www-form-urlencoded")],
            body: "Param1=value1",
            signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ]

    static let unreserved =
        "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    @Test("the published suite is verified", arguments: SigV4VectorTests.suite)
    func publishedSuite(_ vector: Vector) throws {
        var headers: [(name: String, value: String)] = [
            (name: "host", value: "example.amazonaws.com"),
            (name: "x-amz-date", value: Self.published),
        ]
        headers += vector.headers
        let signed = Set(headers.map(\.name)).sorted().joined(separator: ";")
        let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request"
        headers.append(
            (
                name: "authorization",
                value: "AWS4-HMAC-SHA256 Credential=\(scope), SignedHeaders=\(signed), "
                    + "Signature=\(vector.signature)"
            ))
        let request = SigV4Request(
            method: vector.method, path: vector.path, query: vector.query, headers: headers)
        let verifier = SigV4Verifier(region: "us-east-1", service: "service")
        let claim = try verifier.claim(of: request, now: Self.publishedSeconds)
        #expect(claim.accessKeyID == "AKIDEXAMPLE")
        try verifier.verify(
            claim, of: request, body: Array(vector.body.utf8), secret: Self.secret)
        #expect(throws: APIFailure.self) {
            try verifier.verify(
                claim, of: request, body: Array(vector.body.utf8), secret: Self.secret + "x")
        }
    }

    @Test("the signing key is the one of the published derivation")
    func signingKey() throws {
        let request = SigV4Request(
            method: "GET", path: "/", query: "",
            headers: [
                (name: "host", value: "example.amazonaws.com"),
                (name: "x-amz-date", value: Self.published),
                (
                    name: "authorization",
                    value: "AWS4-HMAC-SHA256 "
                        + "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                        + "SignedHeaders=host;x-amz-date, Signature=00"
                ),
            ])
        let key = SigV4Canonical.signingKey(secret: Self.secret, try SigV4Claim(request))
        #expect(
            Digests.hexadecimal(key)
                == "938127b5336810ddb6a5d6af445fcac9e371f9ed418ed386b022aed82901be75")
    }

    /// As boto3 1.43.11 sent it for `list_records` and `update_records`.
    struct Sent: Sendable, CustomTestStringConvertible {
        let name: String
        let method: String
        let path: String
        var query = ""
        var headers: [(name: String, value: String)] = []
        let signed: String
        var body = ""
        let signature: String

        var testDescription: String { name }
    }

    static let pool = "us-east-1%3A01234567-89ab-cdef-0123-456789abcdef"
    static let listPath =
        "/identitypools/\(pool)/identities/\(pool)/datasets/a%3Ab_c.d-e/records"
    static let updatePath = "/identitypools/\(pool)/identities/\(pool)/datasets/notes"
    static let updateBody =
        #"{"SyncSessionToken": "s", "RecordPatches": "#
        + #"[{"Op": "replace", "Key": "k", "Value": "v", "SyncCount": 0}]}"#
    static let token = (name: "x-amz-security-token", value: "TOKEN+/=")
    static let updateHeaders = [
        (name: "x-amz-client-context", value: "c  d"),
        (name: "content-type", value: "application/json"),
    ]

    static let sent = [
        Sent(
            name: "list, permanent credentials", method: "GET", path: listPath,
            query: "lastSyncCount=3&syncSessionToken=x%2B%2F%3D%20y", signed: "host;x-amz-date",
            signature: "8b3863047e9fc8d9927acd653054aa604611201b53c132fcced6543b67cf61e1"),
        Sent(
            name: "list, temporary credentials", method: "GET", path: listPath,
            query: "lastSyncCount=3&syncSessionToken=x%2B%2F%3D%20y", headers: [token],
            signed: "host;x-amz-date;x-amz-security-token",
            signature: "24cf2ae7cfee8489cade372bc5f26335e44a62e2d6e2aef5a6b1e009bea6aff8"),
        Sent(
            name: "update, permanent credentials", method: "POST", path: updatePath,
            headers: updateHeaders, signed: "content-type;host;x-amz-client-context;x-amz-date",
            body: updateBody,
            signature: "9ca722d5f0d379d4e5a14239f5df96f4afcc447b42bc091ab7b94baceeb0c251"),
        Sent(
            name: "update, temporary credentials", method: "POST", path: updatePath,
            headers: updateHeaders + [token],
            signed: "content-type;host;x-amz-client-context;x-amz-date;x-amz-security-token",
            body: updateBody,
            signature: "f62d3e038025305618103d0bdae349ea648fc0151ca47be1fa16c5fa6e3a0aa5"),
    ]

    @Test("what boto3 sends is verified", arguments: SigV4VectorTests.sent)
    func sentByBoto(_ sent: Sent) throws {
        var headers: [(name: String, value: String)] = [
            (name: "host", value: "127.0.0.1:7300"),
            (name: "x-amz-date", value: "20260301T120000Z"),
        ]
        headers += sent.headers
        let scope = "AKIDEXAMPLE/20260301/us-east-1/cognito-sync/aws4_request"
        headers.append(
            (
                name: "authorization",
                value: "AWS4-HMAC-SHA256 Credential=\(scope), SignedHeaders=\(sent.signed), "
                    + "Signature=\(sent.signature)"
            ))
        let request = SigV4Request(
            method: sent.method, path: sent.path, query: sent.query, headers: headers)
        let verifier = SigV4Verifier(region: nil, service: "cognito-sync")
        let claim = try verifier.claim(of: request, now: 1_772_366_400)
        let token = sent.headers.first { $0.name == Self.token.name }?.value
        #expect(claim.securityToken == token)
        try verifier.verify(claim, of: request, body: Array(sent.body.utf8), secret: Self.secret)
    }
}
