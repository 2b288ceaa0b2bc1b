import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

@Suite struct RequestSignerTests {
    private let signer = RequestSigner(
        accessKeyID: "AKIDEXAMPLE", secret: HubSecret("secret of a test"),
        token: HubSecret("token of a test"), region: "us-east-1")

    private func signed(_ body: [UInt8]) throws -> SigV4Request {
        let request = SigV4Request(
            method: "POST", path: "/identitypools/us-east-1%3Aab", query: "a=%2B&b=",
            headers: [
                (name: "content-type", value: "application/json"),
                (name: "host", value: "hub.example.com:8080"),
            ])
        // 2026-03-01 12:00:00 UTC.
        return try signer.signed(
            request, body: body, service: "cognito-sync", milliseconds: 1_772_366_400_999)
    }

    @Test func theHubTakesWhatItSigns() throws {
        let body = Array(#"{"a":1}"#.utf8)
        let request = try signed(body)
        #expect(request.values(of: "x-amz-date") == ["20260301T120000Z"])
        let verifier = SigV4Verifier(region: "us-east-1", service: "cognito-sync")
        let claim = try verifier.claim(of: request, now: 1_772_366_400)
        #expect(claim.accessKeyID == "AKIDEXAMPLE")
        #expect(claim.securityToken == "token of a test")
        #expect(
            claim.signedHeaders == [
                "content-type", "host", "x-amz-date", "x-amz-security-token",
            ])
        try verifier.verify(claim, of: request, body: body, secret: "secret of a test")
        #expect(throws: APIFailure.self) {
            try verifier.verify(claim, of: request, body: body + [32], secret: "secret of a test")
        }
    }

    @Test(arguments: [
        (
            "https://cognito-sync.eu-west-1.amazonaws.com/", "cognito-sync.eu-west-1.amazonaws.com",
            "https://cognito-identity.eu-west-1.amazonaws.com"
        ),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://hub.example.com:443", "hub.example.com", "https://hub.example.com"),
        (
            "http://cognito-sync.example.com:80", "cognito-sync.example.com",
            "http://cognito-sync.example.com"
        ),
    ])
    func endpoints(text: String, host: String, identities: String) throws {
        let endpoint = try ImportEndpoint(text)
        #expect(endpoint.host == host)
        #expect(endpoint.ofIdentities == identities)
    }

    @Test(arguments: [
        "", "hub", "ftp://hub", "https://", "https://hub/path", "https://user@hub", "http://a b",
        "https://hub?x", "https://hüb",
    ])
    func noEndpoints(text: String) {
        #expect(throws: HubImportError.self) { try ImportEndpoint(text) }
    }
}
