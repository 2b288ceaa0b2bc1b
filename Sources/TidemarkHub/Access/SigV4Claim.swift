/// What a request says of its signature. Nothing of it is verified yet.
///
/// Signature Version 4 has two places for it: the header `Authorization`, and, for requests that
/// can carry no header such as a browser's `EventSource`, the query.
struct SigV4Claim: Sendable {
    /// What the secret is looked up by.
    let accessKeyID: String
    let day: String
    let region: String
    let service: String
    /// In lower case, sorted, each once.
    let signedHeaders: [String]
    let signature: String
    let time: SigV4Time
    /// Of temporary credentials; nil for permanent ones.
    let securityToken: String?
    /// For how long the signature is good, counted from its time; nil if it stands in a header,
    /// where the bound on the skew of clocks is the only one.
    let expiresSeconds: Int64?

    static let algorithm = "AWS4-HMAC-SHA256"
    /// Seven days.
    static let expiresSecondsMax: Int64 = 604_800
    /// Bytes of a header or parameter: more than any client sends, and little to go through.
    static let textBytesMax = 16_384

    /// - Throws: `missingAuthenticationToken` if the request is not signed, `incompleteSignature`
    ///   if anything of its signature is missing or out of shape.
    init(_ request: SigV4Request) throws(APIFailure) {
        let authorizations = request.values(of: "authorization")
        let parameters = try request.parameters()
        // The signature itself is the one parameter that it does not cover. So it has no place in a
        // request that is signed in the header.
        let isPresigned = parameters.contains {
            $0.name == "X-Amz-Algorithm" || $0.name == "X-Amz-Signature"
        }
        switch (authorizations.count, isPresigned) {
        case (1, false):
            try self.init(header: authorizations[0], of: request)
        case (0, true):
            try self.init(parameters: parameters)
        case (0, false):
            throw APIFailure(
                .missingAuthenticationToken,
                "the request is not signed; sign it with Signature Version 4")
        default:
            throw Self.incomplete("the request is signed more than once; sign it once")
        }
    }

    private init(header: String, of request: SigV4Request) throws(APIFailure) {
        let prefix = Self.algorithm + " "
        guard header.utf8.count <= Self.textBytesMax, header.hasPrefix(prefix) else {
            throw Self.incomplete("Authorization must begin with \(Self.algorithm)")
        }
        var parts: [String: String] = [:]
        for part in header.dropFirst(prefix.count).split(separator: ",") {
            let trimmed = part.drop { $0 == " " }
            let pair = trimmed.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, parts[String(pair[0])] == nil else {
                throw Self.incomplete("a part of Authorization has no value or comes twice")
            }
            var value = pair[1]
            while value.last == " " { value.removeLast() }
            parts[String(pair[0])] = String(value)
        }
        guard let credential = parts["Credential"], let signed = parts["SignedHeaders"],
            let signature = parts["Signature"]
        else {
            throw Self.incomplete("Authorization lacks Credential, SignedHeaders or Signature")
        }
        let tokens = request.values(of: "x-amz-security-token")
        guard tokens.count <= 1 else {
            throw Self.incomplete("X-Amz-Security-Token comes more than once")
        }
        try self.init(
            credential: credential, signed: signed, signature: signature,
            time: request.onlyValue(of: "x-amz-date"), token: tokens.first, expires: nil)
    }

    private init(parameters: [(name: String, value: String)]) throws(APIFailure) {
        var parts: [String: String] = [:]
        for parameter in parameters where parameter.name.hasPrefix("X-Amz-") {
            guard parts.updateValue(parameter.value, forKey: parameter.name) == nil else {
                throw Self.incomplete("a parameter of the signature comes more than once")
            }
        }
        guard parts["X-Amz-Algorithm"] == Self.algorithm else {
            throw Self.incomplete("X-Amz-Algorithm must be \(Self.algorithm)")
        }
        guard let credential = parts["X-Amz-Credential"],
            let signed = parts["X-Amz-SignedHeaders"], let signature = parts["X-Amz-Signature"],
            let expires = parts["X-Amz-Expires"].flatMap({ Int64($0) }),
            (1...Self.expiresSecondsMax).contains(expires)
        else {
            throw Self.incomplete(
                "the query lacks X-Amz-Credential, X-Amz-SignedHeaders, X-Amz-Signature or an "
                    + "X-Amz-Expires of 1...\(Self.expiresSecondsMax) seconds")
        }
        try self.init(
            credential: credential, signed: signed, signature: signature,
            time: parts["X-Amz-Date"], token: parts["X-Amz-Security-Token"], expires: expires)
    }

    private init(
        credential: String, signed: String, signature: String, time: String?, token: String?,
        expires: Int64?
    ) throws(APIFailure) {
        let scope = credential.split(separator: "/", omittingEmptySubsequences: false)
        guard scope.count == 5, scope[4] == "aws4_request", scope.allSatisfy({ !$0.isEmpty })
        else {
            throw Self.incomplete(
                "Credential must be KEY/DATE/REGION/SERVICE/aws4_request")
        }
        let names = signed.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
        guard names.allSatisfy({ !$0.isEmpty && $0 == $0.lowercased() }),
            zip(names, names.dropFirst()).allSatisfy({
                $0.utf8.lexicographicallyPrecedes($1.utf8)
            })
        else {
            throw Self.incomplete("SignedHeaders must be in lower case, sorted, each once")
        }
        guard let time = time.flatMap({ SigV4Time($0) }) else {
            throw Self.incomplete("X-Amz-Date must be one time as in 20150830T123600Z")
        }
        accessKeyID = String(scope[0])
        day = String(scope[1])
        region = String(scope[2])
        service = String(scope[3])
        signedHeaders = names
        self.signature = signature
        self.time = time
        securityToken = token
        expiresSeconds = expires
    }

    static func incomplete(_ message: String) -> APIFailure {
        APIFailure(.incompleteSignature, message)
    }
}
