import Testing

@testable import TidemarkHub

struct SyncQueryTests {
    private static func query(_ text: String) throws(APIFailure) -> SyncQuery {
        try SyncQuery(SigV4Request(method: "GET", path: "/", query: text, headers: []))
    }

    @Test("parameters are decoded by their names in the service model")
    func parameters() throws {
        let query = try Self.query(
            "lastSyncCount=3&maxResults=10&nextToken=a%2B%2F%3D&syncSessionToken=x%20y&other=%31"
                + "&X-Amz-Date=1")
        #expect(query.lastSyncCount == 3)
        #expect(query.maxResults == 10)
        #expect(query.nextToken == "a+/=")
        #expect(query.syncSessionToken == "x y")
        let none = try Self.query("")
        #expect(none.lastSyncCount == nil && none.maxResults == nil)
        #expect(none.nextToken == nil && none.syncSessionToken == nil)
        #expect(try Self.query("maxResults=0").maxResults == nil)
    }

    @Test(
        "what is no number, comes twice or is not encoded is refused",
        arguments: [
            "lastSyncCount=", "lastSyncCount=-1", "lastSyncCount=a", "maxResults=-1",
            "maxResults=1.5", "lastSyncCount=18446744073709551616", "maxResults=1&maxResults=1",
            "nextToken=%", "nextToken=%FF",
        ])
    func refused(_ text: String) {
        let error = #expect(throws: APIFailure.self) { try Self.query(text) }
        #expect(error?.kind == .invalidParameter)
    }
}
