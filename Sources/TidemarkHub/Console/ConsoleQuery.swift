/// The parameters of a request of the console, each of which its operation knows and none of which
/// comes twice.
struct ConsoleQuery: Sendable {
    private var values: [String: [UInt8]] = [:]

    /// - Parameter names: that the operation takes.
    /// - Throws: `invalidParameter` for any other, for one that comes twice, and for what is not
    ///   percent-encoded.
    init(_ query: String, names: Set<String>) throws(APIFailure) {
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentCoding.decodedText(parts[0]),
                let value = PercentCoding.decoded(parts.count > 1 ? parts[1] : "")
            else {
                throw APIFailure(
                    .invalidParameter, "the query is not percent-encoded; encode it anew")
            }
            guard names.contains(name) else {
                throw APIFailure(
                    .invalidParameter,
                    "the query has a parameter that this is not asked with; it takes "
                        + (names.isEmpty ? "none" : names.sorted().joined(separator: ", ")))
            }
            guard values.updateValue(value, forKey: name) == nil else {
                throw APIFailure(.invalidParameter, "\(name) comes more than once")
            }
        }
    }

    /// Any bytes; nil if it is missing or empty.
    func bytes(_ name: String) -> [UInt8]? {
        values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// nil if it is missing or empty.
    ///
    /// - Throws: `invalidParameter` for what is not UTF-8.
    func text(_ name: String) throws(APIFailure) -> String? {
        guard let bytes = bytes(name) else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw APIFailure(.invalidParameter, "\(name) is not UTF-8")
        }
        return text
    }

    /// - Throws: `invalidParameter` for what is no number, or out of bounds.
    func number(
        _ name: String, in bounds: ClosedRange<Int>, default fallback: Int
    ) throws(APIFailure) -> Int {
        guard let text = try text(name) else { return fallback }
        guard let number = Int(text), bounds.contains(number) else {
            throw APIFailure(
                .invalidParameter,
                "\(name) must be a number of \(bounds.lowerBound)...\(bounds.upperBound)")
        }
        return number
    }

    /// The dataset behind which a list of them goes on; nil to begin.
    ///
    /// - Throws: `invalidParameter`.
    func datasetBefore() throws(APIFailure) -> String? {
        let after = try text("after")
        if let after, !ConsoleNames.isDatasetText(after) {
            throw APIFailure(.invalidParameter, "after is no name of a dataset")
        }
        return after
    }

    /// Rows of a page.
    ///
    /// - Throws: `invalidParameter`.
    func limit() throws(APIFailure) -> Int {
        try number(
            "limit", in: 1...ConsoleLimits.rowsMax, default: ConsoleLimits.rowsDefault)
    }

    /// - Throws: `invalidParameter` for what is neither 0 nor 1.
    func flag(_ name: String) throws(APIFailure) -> Bool {
        try number(name, in: 0...1, default: 0) == 1
    }

    /// - Throws: `invalidParameter` for what is none of the choices.
    func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, default fallback: Choice
    ) throws(APIFailure) -> Choice where Choice.RawValue == String {
        guard let text = try text(name) else { return fallback }
        guard let choice = Choice(rawValue: text) else {
            let all = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIFailure(.invalidParameter, "\(name) must be one of \(all)")
        }
        return choice
    }

    /// A dataset of the store.
    ///
    /// - Throws: `invalidParameter`, `resourceNotFound`.
    func dataset() throws(APIFailure) -> String {
        try ConsoleNames.dataset(try text("dataset"))
    }

    /// - Throws: `invalidParameter`.
    func reference(_ name: String) throws(APIFailure) -> RecordReference? {
        guard let text = try text(name) else { return nil }
        return try RecordReference(text, called: name)
    }

    /// The record that a request is about.
    ///
    /// - Throws: `invalidParameter`, also if it is missing.
    func record() throws(APIFailure) -> RecordReference {
        guard let reference = try reference("id") else {
            throw APIFailure(.invalidParameter, "id is missing; take one of a list")
        }
        return reference
    }
}
