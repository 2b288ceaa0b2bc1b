import HTTPTypes

/// What a signature is about: a request's head, just as it came.
struct SigV4Request: Sendable {
    var method: String
    /// Before the question mark, not decoded.
    var path: String
    /// Behind the question mark, not decoded; empty if there is none.
    var query: String
    /// By their names in lower case, in the order in which they came.
    var headers: [(name: String, value: String)]

    init(
        method: String, path: String, query: String, headers: [(name: String, value: String)]
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
    }

    /// The host is a part of the request's target there, not of its fields.
    init(_ head: HTTPRequest) {
        method = head.method.rawValue
        let target = head.path ?? "/"
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts.first ?? "/")
        query = parts.count > 1 ? String(parts[1]) : ""
        headers = []
        if let authority = head.authority {
            headers.append((name: "host", value: authority))
        }
        for field in head.headerFields {
            headers.append((name: field.name.canonicalName, value: field.value))
        }
    }

    /// All values of a header, in their order. The name is in lower case.
    func values(of name: String) -> [String] {
        headers.filter { $0.name == name }.map(\.value)
    }

    /// The value of a header that may come once; nil if it is missing or comes more than once.
    func onlyValue(of name: String) -> String? {
        let values = values(of: name)
        return values.count == 1 ? values[0] : nil
    }

    /// The parameters of the query, decoded, in their order. Nothing between two `&` is none.
    ///
    /// - Throws: `invalidParameter` for a `%` without two digits behind it or what is not UTF-8.
    func parameters() throws(APIFailure) -> [(name: String, value: String)] {
        var parameters: [(name: String, value: String)] = []
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let raw = parts.count > 1 ? parts[1] : ""
            guard let name = PercentCoding.decodedText(parts[0]),
                let value = PercentCoding.decodedText(raw)
            else {
                throw APIFailure(
                    .invalidParameter, "the query is not percent-encoded UTF-8; encode it anew")
            }
            parameters.append((name: name, value: value))
        }
        return parameters
    }
}
