import TestSupport
import Testing

@testable import tidemark

/// What is wrong with a command line; what an import brings over is proved against a hub, by
/// tools/cognito.
@Suite struct ImportCognitoTests {
    let tool: CommandLineTool

    init() throws {
        tool = try CommandLineTool()
    }

    private let pool = "us-east-1:00000000-0000-4000-8000-000000000001"

    /// Nothing listens there: whatever comes so far fails by that.
    private func run(
        _ more: String..., endpoint: String = "http://127.0.0.1:9", pool: String? = nil
    ) async throws -> Outcome {
        let secret = try tool.file("secret", "0123456789abcdef\n")
        let arguments =
            [
                "import", "cognito", tool.path("store"), "--endpoint", endpoint, "--pool",
                pool ?? self.pool, "--access-key", "AKIATEST", "--secret-key-file", secret,
            ] + more
        let running = try RunningCommand(
            try CommandLineTool.binary(), arguments, in: tool.directory)
        return try await running.outcome()
    }

    @Test func itHasHelpAndSoHasItsGroup() async throws {
        let help = try await tool.succeed("import", "cognito", "--help").text
        #expect(help.contains("--endpoint <url>"))
        #expect(help.contains("--logins <file>"))
        let group = try await tool.succeed("import", "--help").text
        #expect(group.contains("  file "))
        #expect(group.contains("  cognito "))
    }

    @Test func itNeedsAnAddressAPoolAndAKey() async throws {
        let store = tool.path("store")
        expectFailure(try await tool.run("import", "cognito", store), .usage, "--endpoint")
        let noKey = try await tool.shell(
            "env -u AWS_ACCESS_KEY_ID \"$tidemark\" import cognito store --endpoint http://x "
                + "--pool \(pool)")
        expectFailure(noKey, .usage, "--access-key")
        let noSecret = try await tool.shell(
            "env -u AWS_SECRET_ACCESS_KEY \"$tidemark\" import cognito store --endpoint http://x "
                + "--pool \(pool) --access-key A")
        expectFailure(noSecret, .usage, "--secret-key-file")
        #expect(!Files.exists(store))
    }

    @Test func namesAndAddressesAreLookedAt() async throws {
        expectFailure(try await run(endpoint: "http://x/path"), .usage, "no address")
        expectFailure(try await run(pool: "no-colon"), .usage, "no id of a pool")
        let ids = try tool.file("ids", "us-east-1:00\nnone\n")
        expectFailure(try await run("--identities", ids), .usage, "no id of an identity")
        #expect(!Files.exists(tool.path("store")))
    }

    @Test(arguments: [
        "x", "{}", #"{"identityId":"a:0","provider":"p"}"#,
        #"{"identityId":"a:0","provider":"p","subject":1}"#,
    ])
    func aLoginThatIsNoneIsNamedByItsLine(line: String) async throws {
        let file = try tool.file("logins", "\n\(line)\n")
        expectFailure(try await run("--logins", file), .badData, "line 2 of")
        #expect(!Files.exists(tool.path("store")))
    }
}
