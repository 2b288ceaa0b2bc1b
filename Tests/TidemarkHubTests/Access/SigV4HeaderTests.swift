import Testing

@testable import TidemarkHub

/// Headers that clients sign, each in its own way, and such as come twice.
struct SigV4HeaderTests {
    private let signer = SigV4Signer()
    private let verifier = SigV4Verifier(region: "us-east-1", service: "cognito-sync")

    private func failure(of request: SigV4Request, body: [UInt8] = []) -> APIFailure.Kind? {
        do throws(APIFailure) {
            let claim = try verifier.claim(of: request, now: SigV4VerifierTests.now)
            try verifier.verify(claim, of: request, body: body, secret: signer.secret)
            return nil
        } catch {
            return error.kind
        }
    }

    private func plain(_ headers: [(name: String, value: String)] = []) -> SigV4Request {
        SigV4Request(
            method: "POST", path: "/identitypools/us-east-1%3A0", query: "",
            headers: [(name: "host", value: "127.0.0.1:7300")] + headers)
    }

    /// The request with another value of one of its headers.
    private func altered(_ request: SigV4Request, _ name: String) -> SigV4Request {
        var request = request
        for index in request.headers.indices where request.headers[index].name == name {
            request.headers[index].value += "x"
        }
        return request
    }

    @Test("what boto3, browsers and Android sign is taken, and nothing of it can be altered")
    func clients() throws {
        let body = Array("{}".utf8)
        let digest = Digests.hexadecimal(Digests.sha256(body))
        // Browsers and Android leave the type of the body out.
        let sets: [(headers: [(name: String, value: String)], unsigned: Set<String>)] = [
            (
                [
                    (name: "content-type", value: "application/json"),
                    (name: "x-amz-client-context", value: "c"),
                    (name: "x-amz-security-token", value: "t"),
                ], []
            ),
            (
                [
                    (name: "content-type", value: "application/json"),
                    (name: "x-amz-content-sha256", value: digest),
                    (name: "x-amz-user-agent", value: "aws-sdk-js/2.1  callback"),
                    (name: "x-amz-security-token", value: "t"),
                ], ["content-type"]
            ),
            (
                [
                    (name: "content-type", value: "application/json"),
                    (name: "x-amz-security-token", value: "t"),
                ], ["content-type"]
            ),
        ]
        for set in sets {
            var client = signer
            client.unsigned = set.unsigned
            let request = try client.signed(plain(set.headers), body: body)
            #expect(failure(of: request, body: body) == nil)
            for header in request.headers {
                let found = failure(of: altered(request, header.name), body: body)
                #expect((found == nil) == set.unsigned.contains(header.name), "\(header.name)")
            }
        }
    }

    @Test("a header that comes twice is signed with both values, in their order")
    func repeated() throws {
        let headers = [(name: "x-amz-meta", value: "a"), (name: "x-amz-meta", value: "b")]
        let request = try signer.signed(plain(headers), body: [])
        #expect(failure(of: request) == nil)
        var other = request
        other.headers.swapAt(1, 2)
        #expect(failure(of: other) == .invalidSignature)
        other = request
        other.headers.remove(at: 2)
        #expect(failure(of: other) == .invalidSignature)
    }

    @Test("what may come once is refused when it comes twice, even with the same value")
    func once() throws {
        let token = [(name: "x-amz-security-token", value: "t")]
        let request = try signer.signed(plain(token), body: [])
        #expect(failure(of: request) == nil)
        for (name, expected) in [
            ("host", APIFailure.Kind.invalidSignature), ("x-amz-date", .incompleteSignature),
            ("x-amz-security-token", .incompleteSignature),
            ("authorization", .incompleteSignature),
        ] {
            let value = try #require(request.onlyValue(of: name))
            var twice = request
            twice.headers.append((name: name, value: value))
            #expect(failure(of: twice) == expected, "\(name)")
        }
    }

    @Test("a parameter of the signature that comes twice, or a body that it is not of, is refused")
    func presigned() throws {
        var plain = plain()
        plain.query = "X-Amz-Security-Token=t"
        let request = try signer.presigned(plain, expiresSeconds: 60)
        #expect(failure(of: request) == nil)
        #expect(failure(of: request, body: [0]) == .invalidSignature)
        for parameter in request.query.split(separator: "&") {
            var twice = request
            twice.query += "&\(parameter)"
            #expect(failure(of: twice) == .incompleteSignature, "\(parameter)")
        }
        var other = request
        other.query = other.query.replacing("Token=t", with: "Token=u")
        #expect(failure(of: other) == .invalidSignature)
    }
}
