/// Where a listing of records goes on: the token of its next page.
struct RecordPageToken: Hashable, Sendable {
    /// The store's sync count of the dataset at the first page. What came later is not listed.
    let through: UInt64
    /// The API's, which every page tells. It cannot be found out later: `CountMap` drops places of
    /// which no record is left, and another count may be that of records that are on no page.
    let count: UInt64
    /// The store's sync count of the last record told.
    let last: UInt64
    /// The API's count that the client had.
    let since: UInt64
    /// What the first page said.
    let isDeleted: Bool

    private static let form: UInt8 = 1

    func sealed(of storeName: String, _ secrets: HubSecrets) -> String {
        var payload = [Self.form]
        payload += DatasetMark.bytes(storeName)
        for number in [through, count, last, since] { payload += BigEndian.bytes(number) }
        payload.append(isDeleted ? 1 : 0)
        return SealedToken.seal(payload, .page, secrets)
    }

    init(through: UInt64, count: UInt64, last: UInt64, since: UInt64, isDeleted: Bool) {
        self.through = through
        self.count = count
        self.last = last
        self.since = since
        self.isDeleted = isDeleted
    }

    /// - Throws: `invalidParameter` if it is not one of this dataset.
    init(_ text: String, of storeName: String, _ secrets: HubSecrets) throws(APIFailure) {
        var rest = PageToken.opened(text, form: Self.form, secrets)
        let mark = Array(rest.prefix(DatasetMark.count))
        rest = rest.dropFirst(DatasetMark.count)
        guard mark == DatasetMark.bytes(storeName), let through = BigEndian.take(&rest),
            let count = BigEndian.take(&rest), let last = BigEndian.take(&rest),
            let since = BigEndian.take(&rest), let flag = rest.first
        else { throw PageToken.foreign }
        self.init(
            through: through, count: count, last: last, since: since, isDeleted: flag == 1)
    }
}

/// Where a listing of names goes on.
struct NamePageToken: Hashable, Sendable {
    /// Of what the names are: one kind's tokens are none of another's.
    enum Kind: UInt8, Sendable {
        case datasets = 2
        case pools = 3
    }

    /// The last name told.
    let last: String

    /// - Parameter owner: whose names they are.
    func sealed(_ kind: Kind, of owner: String, _ secrets: HubSecrets) -> String {
        var payload = [kind.rawValue]
        payload += DatasetMark.bytes(owner)
        payload += Array(last.utf8)
        return SealedToken.seal(payload, .page, secrets)
    }

    init(last: String) {
        self.last = last
    }

    /// - Throws: `invalidParameter` if it is not one of that kind and owner.
    init(
        _ text: String, _ kind: Kind, of owner: String, _ secrets: HubSecrets
    ) throws(APIFailure) {
        let rest = PageToken.opened(text, form: kind.rawValue, secrets)
        guard Array(rest.prefix(DatasetMark.count)) == DatasetMark.bytes(owner),
            let last = String(
                validating: rest.dropFirst(DatasetMark.count), as: UTF8.self)
        else { throw PageToken.foreign }
        self.last = last
    }
}

/// What tokens of pages have in common.
enum PageToken {
    static var foreign: APIFailure {
        APIFailure(.invalidParameter, "NextToken is not one of this listing; begin it again")
    }

    /// The payload behind the form; empty if it is none of that form.
    static func opened(
        _ text: String, form: UInt8, _ secrets: HubSecrets
    ) -> ArraySlice<UInt8> {
        guard let payload = SealedToken.open(text, .page, secrets), payload.first == form else {
            return []
        }
        return payload.dropFirst()
    }
}
