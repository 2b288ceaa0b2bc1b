import TestSupport
import Testing

@testable import TidemarkHub

/// A request is taken as it was signed, and refused however it was altered.
struct SigV4VerifierTests {
    static let now: Int64 = 1_772_366_400
    let signer = SigV4Signer()
    let verifier = SigV4Verifier(region: "us-east-1", service: "cognito-sync")

    /// What becomes of a request: nil if it is taken.
    private func failure(
        of request: SigV4Request, body: [UInt8], now: Int64 = Self.now
    ) -> APIFailure.Kind? {
        do throws(APIFailure) {
            let claim = try verifier.claim(of: request, now: now)
            try verifier.verify(claim, of: request, body: body, secret: signer.secret)
            return nil
        } catch {
            return error.kind
        }
    }

    private func plain() -> SigV4Request {
        SigV4Request(
            method: "GET", path: "/identitypools", query: "maxResults=3",
            headers: [(name: "host", value: "127.0.0.1:7300")])
    }

    /// Any request that a client might send.
    private func anyRequest(
        _ generator: inout SeededGenerator
    ) -> (request: SigV4Request, body: [UInt8]) {
        let methods = ["GET", "POST", "DELETE"]
        var path = ""
        for _ in 0..<(1 + generator.below(5)) {
            path += "/" + PercentCoding.encoded(generator.bytes(1 + generator.below(9)))
        }
        var query: [String] = []
        for index in 0..<generator.below(4) {
            let value = PercentCoding.encoded("v\(generator.below(99)) +/=é".utf8)
            query.append("name\(index)=\(value)")
        }
        var headers: [(name: String, value: String)] = [(name: "host", value: "127.0.0.1:7300")]
        let others = ["content-type", "x-amz-client-context", "x-amz-security-token", "accept"]
        for name in others where generator.oneIn(2) {
            headers.append((name: name, value: "a \(generator.below(1_000))"))
        }
        let request = SigV4Request(
            method: generator.element(of: methods), path: path,
            query: query.joined(separator: "&"), headers: headers)
        return (request, generator.bytes(generator.below(40)))
    }

    @Test("what was signed is taken, and no altered part of it")
    func alterations() throws {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<200 {
            let (plain, body) = anyRequest(&generator)
            let signed = try signer.signed(plain, body: body)
            #expect(failure(of: signed, body: body) == nil)
            for (part, request, body) in try altered(signed, body, &generator) {
                #expect(failure(of: request, body: body) != nil, "altered: \(part)")
            }
        }
    }

    /// One part of a request changed at a time.
    private func altered(
        _ signed: SigV4Request, _ body: [UInt8], _ generator: inout SeededGenerator
    ) throws -> [(part: String, request: SigV4Request, body: [UInt8])] {
        var all: [(part: String, request: SigV4Request, body: [UInt8])] = []
        func add(_ part: String, body: [UInt8], _ change: (inout SigV4Request) -> Void) {
            var request = signed
            change(&request)
            all.append((part: part, request: request, body: body))
        }
        add("method", body: body) { $0.method = $0.method == "GET" ? "PUT" : "GET" }
        add("path", body: body) { $0.path += "/x" }
        add("query", body: body) { $0.query += "&extra=1" }
        add("longer body", body: body + [0]) { _ in }
        if !body.isEmpty {
            var other = body
            other[generator.below(other.count)] ^= 1 << UInt8(generator.below(8))
            add("one bit of the body", body: other) { _ in }
        }
        for index in signed.headers.indices {
            let name = signed.headers[index].name
            guard name != "authorization" else { continue }
            add("value of \(name)", body: body) { $0.headers[index].value += "x" }
            add("lack of \(name)", body: body) { $0.headers.remove(at: index) }
        }
        add("an unsigned header of AWS", body: body) {
            $0.headers.append((name: "x-amz-new", value: "1"))
        }
        let last = signed.headers.count - 1
        let authorization = Array(signed.headers[last].value.utf8)
        let place = generator.below(authorization.count)
        var other = authorization
        other[place] = other[place] == UInt8(ascii: "q") ? UInt8(ascii: "p") : UInt8(ascii: "q")
        let text = try #require(String(validating: other, as: UTF8.self))
        // A blank before a part may be missing; the key's name is looked up by the caller.
        if authorization[place] != UInt8(ascii: " "), !isOfKeyName(place) {
            add("Authorization at \(place)", body: body) { $0.headers[last].value = text }
        }
        return all
    }

    private func isOfKeyName(_ place: Int) -> Bool {
        let before = "AWS4-HMAC-SHA256 Credential=".utf8.count
        return (before..<before + signer.accessKeyID.utf8.count).contains(place)
    }

    @Test("clocks may differ by five minutes both ways, and no more")
    func skew() throws {
        let request = try signer.signed(plain(), body: [])
        let tolerated: [Int64] = [-300, 0, 300]
        for skew in tolerated {
            #expect(failure(of: request, body: [], now: Self.now + skew) == nil)
        }
        let excessive: [Int64] = [-301, 301, 86_400]
        for skew in excessive {
            let found = failure(of: request, body: [], now: Self.now + skew)
            #expect(found == .invalidSignature)
        }
    }

    @Test("another region or service is refused although the signature is right")
    func scope() throws {
        var elsewhere = signer
        elsewhere.region = "eu-west-1"
        var other = signer
        other.service = "s3"
        for signer in [elsewhere, other] {
            let request = try signer.signed(plain(), body: [])
            #expect(failure(of: request, body: []) == .invalidSignature)
        }
        let anywhere = SigV4Verifier(region: nil, service: "cognito-sync")
        let request = try elsewhere.signed(plain(), body: [])
        let claim = try anywhere.claim(of: request, now: Self.now)
        try anywhere.verify(claim, of: request, body: [], secret: signer.secret)
    }

    @Test(
        "headers that must be signed are missed",
        arguments: ["host", "x-amz-date", "x-amz-security-token"])
    func unsignedHeader(_ name: String) throws {
        var careless = signer
        careless.unsigned = [name]
        var request = plain()
        request.headers.append((name: "x-amz-security-token", value: "t"))
        let signed = try careless.signed(request, body: [])
        #expect(failure(of: signed, body: []) == .incompleteSignature)
    }

    @Test("the digest of the body may be sent, and must be right")
    func bodyDigest() throws {
        let body = Array("{}".utf8)
        var request = plain()
        let digest = Digests.hexadecimal(Digests.sha256(body))
        request.headers.append((name: "x-amz-content-sha256", value: digest))
        let signed = try signer.signed(request, body: body)
        #expect(failure(of: signed, body: body) == nil)
        #expect(failure(of: signed, body: Array("{ }".utf8)) == .invalidSignature)
    }

    @Test(
        "bodies that nothing protects are refused",
        arguments: ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", ""])
    func unsignedBody(_ digest: String) throws {
        var request = plain()
        request.headers.append((name: "x-amz-content-sha256", value: digest))
        let signed = try signer.signed(request, body: [])
        #expect(failure(of: signed, body: []) == .invalidSignature)
    }

    @Test("a signature in the query is good until its end")
    func presigned() throws {
        let request = try signer.presigned(plain(), expiresSeconds: 900)
        #expect(failure(of: request, body: []) == nil)
        #expect(failure(of: request, body: [], now: Self.now + 900) == nil)
        #expect(failure(of: request, body: [], now: Self.now + 901) == .invalidSignature)
        var other = request
        other.query = other.query.replacing("maxResults=3", with: "maxResults=4")
        #expect(failure(of: other, body: []) == .invalidSignature)
        let tooLong = try? signer.presigned(plain(), expiresSeconds: 604_801)
        #expect(tooLong == nil)
    }

    @Test("a request that is signed twice, or not at all, says so")
    func countOfSignatures() throws {
        #expect(failure(of: plain(), body: []) == .missingAuthenticationToken)
        var twice = try signer.signed(plain(), body: [])
        let authorization = try #require(twice.headers.last)
        twice.headers.append(authorization)
        #expect(failure(of: twice, body: []) == .incompleteSignature)
        var both = try signer.presigned(plain(), expiresSeconds: 60)
        both.headers.append(authorization)
        #expect(failure(of: both, body: []) == .incompleteSignature)
    }

    @Test("a signature in the query of a request that is signed in the header is not passed over")
    func strayParameter() throws {
        var request = try signer.signed(plain(), body: [])
        request.query += "&X-Amz-Signature=00"
        #expect(failure(of: request, body: []) == .incompleteSignature)
        var alone = plain()
        alone.query += "&X-Amz-Signature=00"
        #expect(failure(of: alone, body: []) == .incompleteSignature)
    }

    @Test("hostile headers are refused and trap nothing")
    func hostileHeaders() {
        var generator = SeededGenerator(Seed.drawn())
        let pieces = [
            "AWS4-HMAC-SHA256 ", "Credential=", "SignedHeaders=", "Signature=", ",", ";", "/", "=",
            "host", "aws4_request", " ", "a", "%", "\u{E9}", "AKIDEXAMPLE/20260301/", "\t",
        ]
        for _ in 0..<2_000 {
            var text = generator.oneIn(2) ? "AWS4-HMAC-SHA256 " : ""
            for _ in 0..<generator.below(12) { text += generator.element(of: pieces) }
            var request = plain()
            request.headers.append((name: "authorization", value: text))
            request.headers.append((name: "x-amz-date", value: signer.time))
            #expect(failure(of: request, body: []) != nil, "\(text.debugDescription)")
        }
    }

    @Test("times of signatures are read exactly, and other texts not at all")
    func times() {
        #expect(SigV4Time("19700101T000000Z")?.epochSeconds == 0)
        #expect(SigV4Time("20150830T123600Z")?.epochSeconds == 1_440_938_160)
        #expect(SigV4Time("20240229T235959Z")?.epochSeconds == 1_709_251_199)
        #expect(SigV4Time("99991231T235959Z")?.epochSeconds == 253_402_300_799)
        let wrong = [
            "", "20150830T123600", "20150830t123600Z", "20150230T000000Z", "20230229T000000Z",
            "20150830T240000Z", "20150830T006000Z", "19691231T235959Z", "2015083 T123600Z",
            "20151330T123600Z", "20150800T123600Z", "+0150830T123600Z",
        ]
        for text in wrong {
            #expect(SigV4Time(text) == nil, "\(text)")
        }
    }
}
