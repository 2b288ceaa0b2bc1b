import Foundation
import TestSupport
import Testing

@testable import TidemarkHub

/// What the hub is told: from where, in which order, and what is said of mistakes.
struct SettingsReadingTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func file(_ name: String, _ content: String) throws -> String {
        let path = "\(directory.path)/\(name)"
        try Data(content.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func read(
        _ json: String?, _ environment: [String: String] = [:],
        _ flags: [String: SettingValue] = [:]
    ) throws -> HubSettings {
        let path = try json.map { try file("settings.json", $0) }
        return try HubSettings.read(file: path, environment: environment, flags: flags)
    }

    private func failure(_ json: String?, _ environment: [String: String] = [:]) throws
        -> HubSettingsError
    {
        let error = #expect(throws: HubSettingsError.self) { try read(json, environment) }
        return try #require(error)
    }

    static let pool = "us-east-1:3e0e5eb2-2c5c-4bba-8a4d-bd1ad5c1c6f1"

    @Test("what is nowhere has its default")
    func defaults() throws {
        let settings = try read(nil)
        #expect(settings.host == "127.0.0.1")
        #expect(settings.port == 8080)
        #expect(settings.limits == HubLimits())
        #expect(settings.protection == ProtectionSettings())
        #expect(settings.pools.isEmpty)
        #expect(settings.adminToken == nil)
        try settings.check()
    }

    @Test("flags go before the environment, and that before the file")
    func order() throws {
        let json = #"{"listen": {"host": "file", "port": 1}, "region": "file"}"#
        let variables = ["TIDEMARK_LISTEN_HOST": "environment", "TIDEMARK_LISTEN_PORT": "2"]
        let settings = try read(json, variables, ["listen.port": .number(3)])
        #expect(settings.region == "file")
        #expect(settings.host == "environment")
        #expect(settings.port == 3)
    }

    @Test("all of a pool, an issuer and a key, from files")
    func everything() throws {
        let secret = try file("secret", "0123456789abcdef0123456789abcdef\n")
        let json = """
            {"adminTokenFile": "\(secret)", "secretFile": "\(secret)",
             "accessKeys": ["ops"],
             "accessKey": {"ops": {"id": "AKIAOPS", "secretFile": "\(secret)",
                                   "pools": ["\(Self.pool)"]}},
             "issuers": ["accounts"],
             "issuer": {"accounts": {"issuer": "https://accounts.example.com",
                                     "audiences": ["app"], "algorithms": ["RS256", "ES256"],
                                     "keysURL": "https://accounts.example.com/keys"}},
             "pools": ["app"],
             "pool": {"app": {"id": "\(Self.pool)", "allowsGuests": true,
                              "providers": ["accounts.example.com"],
                              "developerProvider": "login.app",
                              "strategy": "lastWriterWins",
                              "datasetStrategies": ["notes=autoMerge", "raw=reject"],
                              "trigger": {"url": "https://app.example.com/t",
                                          "secretFile": "\(secret)"},
                              "stream": {"kind": "file", "path": "stream.jsonl",
                                         "bytesMax": 8192},
                              "push": {"kind": "log"}}},
             "limits": {"datasetsPerIdentityMax": 5},
             "protection": {"idleSeconds": 9},
             "cors": {"origins": ["https://app.example.com"]},
             "metrics": {"isOpen": true}}
            """
        let settings = try read(json)
        #expect(settings.adminToken == HubSecret("0123456789abcdef0123456789abcdef"))
        #expect(settings.secrets == HubSecret("0123456789abcdef0123456789abcdef"))
        let key = try #require(settings.accessKeys.first)
        #expect(key.id == "AKIAOPS" && key.pools == [Self.pool])
        let issuer = try #require(settings.issuers.first)
        #expect(issuer.provider == "accounts.example.com")
        #expect(issuer.algorithms == [.rs256, .es256])
        #expect(issuer.keys == .url("https://accounts.example.com/keys"))
        let pool = try #require(settings.pools.first)
        #expect(pool.id == Self.pool && pool.name == "app" && pool.allowsGuests)
        #expect(pool.strategy == .lastWriterWins)
        #expect(pool.datasetStrategies == ["notes": .autoMerge, "raw": .reject])
        #expect(pool.trigger?.url == "https://app.example.com/t")
        #expect(pool.stream == .file(path: "stream.jsonl"))
        #expect(pool.streamBytesMax == 8_192)
        #expect(pool.push == .log)
        #expect(settings.limits.datasetsPerIdentityMax == 5)
        #expect(settings.protection.idleSeconds == 9)
        #expect(settings.allowedOrigins == ["https://app.example.com"])
        #expect(settings.hasOpenMetrics)
    }

    @Test("a secret may come from the environment, and never from the file itself")
    func secrets() throws {
        let settings = try read(nil, ["TIDEMARK_ADMIN_TOKEN": "from-the-environment"])
        #expect(settings.adminToken == HubSecret("from-the-environment"))
        let error = try failure(#"{"adminToken": "in-the-file"}"#)
        #expect(error.key == "adminToken")
        #expect(!error.description.contains("in-the-file"))
    }

    @Test("secrets show themselves nowhere")
    func hidden() {
        let secret = HubSecret("visible")
        var text = "\(secret) \(String(reflecting: secret)) \(String(describing: [secret]))"
        dump(secret, to: &text)
        var settings = HubSettings()
        settings.adminToken = secret
        text += "\(settings) \(String(reflecting: settings))"
        dump(settings, to: &text)
        #expect(!text.contains("visible"))
        // Nor by the numbers of its bytes.
        #expect(!text.contains("118"))
    }

    @Test("a name that means nothing is told")
    func unknown() throws {
        let error = try failure(#"{"listen": {"prot": 80}, "limits": {"port": 1}}"#)
        #expect(error.key == "limits.port")
        #expect(error.allowed.contains("listen.port"))
        #expect(try failure(#"{"listen": {"prot": 80}}"#).key == "listen.prot")
    }

    @Test("what is spelled nearly right is told with what may have been meant")
    func nearlyRight() throws {
        let cases = [
            (#"{"listen": {"prot": 80}}"#, "listen.port"), (#"{"regoin": "x"}"#, "region"),
            (#"{"limits": {"recordPerDatasetMax": 1}}"#, "limits.recordsPerDatasetMax"),
            (#"{"Region": "x"}"#, "region"), (#"{"readers": 3}"#, "protection.readers"),
        ]
        for (json, meant) in cases {
            let error = try failure(json)
            let hint = error.allowed.components(separatedBy: "did you mean ").dropFirst().first
            #expect(hint?.contains(meant) == true, "\(error)")
        }
        let error = try failure(#"{"somethingElseAltogether": 1}"#)
        #expect(!error.allowed.contains("did you mean"))
    }

    @Test("letters that are put in, taken out, changed or swapped are counted")
    func edits() {
        let cases = [
            ("", "", 0), ("a", "", 1), ("", "abc", 3), ("port", "prot", 1), ("port", "pot", 1),
            ("port", "part", 1), ("port", "sports", 2), ("abcd", "badc", 2), ("a", "b", 1),
        ]
        for (one, other, expected) in cases {
            #expect(SettingNames.edits(Array(one.utf8), Array(other.utf8)) == expected)
            #expect(SettingNames.edits(Array(other.utf8), Array(one.utf8)) == expected)
        }
    }

    @Test("variables of the environment that look like settings and are none are told of")
    func unknownVariables() throws {
        let settings = try read(
            nil,
            [
                "TIDEMARK_LISTEN_PROT": "secret-80", "TIDEMARK_LISTEN_PORT": "80",
                "TIDEMARK_ADMIN_TOKEN": "token", "TIDEMARK_LISTENPORT": "1", "PATH": "/bin",
                "TIDEMARK": "x", "TIDEMARK_QUITE_ANOTHER_PROGRAM_HAS_THIS": "1",
            ])
        let told = settings.warnings
        try #require(told.count == 3)
        #expect(told[0].hasPrefix("TIDEMARK_LISTENPORT "))
        #expect(told[0].contains("did you mean TIDEMARK_LISTEN_PORT"))
        #expect(told[1].hasPrefix("TIDEMARK_LISTEN_PROT "))
        #expect(told[1].contains("did you mean TIDEMARK_LISTEN_PORT"))
        #expect(told[2].hasPrefix("TIDEMARK_QUITE_ANOTHER_PROGRAM_HAS_THIS "))
        #expect(!told[2].contains("did you mean"))
        #expect(!told.joined().contains("secret-80"))
        let fine = try read(nil, ["TIDEMARK_LISTEN_PORT": "80"])
        #expect(fine.warnings.isEmpty)
    }

    @Test("every variable is spelled as it is read")
    func variables() throws {
        let cases = [
            ("listen.port", "TIDEMARK_LISTEN_PORT"), ("metrics.isOpen", "TIDEMARK_METRICS_IS_OPEN"),
            ("issuer.a-b.keysURL", "TIDEMARK_ISSUER_A_B_KEYS_URL"),
            ("limits.datasetsPerIdentityMax", "TIDEMARK_LIMITS_DATASETS_PER_IDENTITY_MAX"),
        ]
        for (key, variable) in cases { #expect(SettingNames.variable(of: key) == variable) }
        // What is no number is told under the name that was read.
        for key in ["sync.messageBytesMax", "protection.ratesMax", "tls.reloadSeconds"] {
            let error = try failure(nil, [SettingNames.variable(of: key): "x"])
            #expect(error.key == key)
        }
    }

    private static let laptop = ["TIDEMARK_BEARER_LAPTOP_TOKEN": "fedcba9876543210"]

    @Test("tokens of bearers, and the order in which they are tried")
    func bearers() throws {
        let token = try file("token", "0123456789abcdef\n")
        let settings = try read(
            """
            {"auth": {"modes": ["issuers", "bearers"]}, "bearers": ["team", "laptop"],
             "bearer": {"team": {"tokenFile": "\(token)"},
                        "laptop": {"identity": "us-east-1:0000-2", "pool": "\(Self.pool)"}},
             "pools": ["app"], "pool": {"app": {"id": "\(Self.pool)"}}}
            """, Self.laptop)
        #expect(settings.authModes == [.issuers, .bearers])
        let expected: [HubSettings.StaticBearer] = [
            .init(token: HubSecret("0123456789abcdef"), reach: .space("team")),
            .init(
                token: HubSecret("fedcba9876543210"),
                reach: .identity("us-east-1:0000-2", pool: Self.pool)),
        ]
        #expect(settings.bearers == expected)
        let defaults = try read(nil)
        #expect(defaults.authModes == HubSettings.AuthMode.allCases)
        let short = try failure(
            #"{"bearers": ["laptop"]}"#, ["TIDEMARK_BEARER_LAPTOP_TOKEN": "fedcba987654321"])
        #expect(short.key == "bearer.token" && !short.description.contains("fedcba"))
        let taken = try failure(
            #"{"bearers": ["laptop"]}"#,
            Self.laptop.merging(["TIDEMARK_ADMIN_TOKEN": "fedcba9876543210"]) { $1 })
        #expect(taken.key == "bearer.token")
    }

    @Test(
        "what is wrong with a bearer is told by its name",
        arguments: [
            (#""auth": {"modes": ["jwt"]}"#, "auth.modes"),
            (#""auth": {"modes": ["hub", "hub"]}"#, "auth.modes"),
            (#""bearers": ["a"]"#, "bearer.a.tokenFile"),
            (
                #""bearers": ["laptop"], "bearer": {"laptop": {"token": "x"}}"#,
                "bearer.laptop.token"
            ),
            (
                #""bearers": ["laptop"], "bearer": {"laptop": {"pool": "r:1"}}"#,
                "bearer.laptop.identity"
            ),
            (#""bearers": ["laptop"], "bearer": {"laptop": {"space": "a:b"}}"#, "bearer.space"),
            (
                #""bearers": ["laptop"], "bearer": {"laptop": {"identity": "r:1", "pool": "r:1"}}"#,
                "bearer.pool"
            ),
        ])
    func bearerMistakes(_ members: String, _ key: String) throws {
        let error = try failure("{\(members)}", Self.laptop)
        #expect(error.key == key, "\(error)")
    }

    @Test(
        "what has the wrong kind, or is out of bounds, is told by its name",
        arguments: [
            (#"{"listen": {"port": "eighty"}}"#, "listen.port"),
            (#"{"listen": {"port": 65536}}"#, "listen.port"),
            (#"{"listen": {"port": -1}}"#, "listen.port"),
            (#"{"listen": {"host": 5}}"#, "listen.host"),
            (#"{"credentials": {"seconds": 899}}"#, "credentials.seconds"),
            (#"{"protection": {"readers": 0}}"#, "protection.readers"),
            (#"{"limits": {"recordsPerDatasetMax": 0}}"#, "limits.recordsPerDatasetMax"),
            (#"{"cors": {"origins": ["app.example.com"]}}"#, "cors.origins"),
            (#"{"pools": ["a b"]}"#, "pools"),
            (#"{"pools": ["a", "a"]}"#, "pools"),
            (#"{"pools": ["a"]}"#, "pool.a.id"),
            (#"{"pools": ["a"], "pool": {"a": {"id": "a"}}}"#, "pool.id"),
            (
                #"{"pools": ["a"], "pool": {"a": {"id": "r:1", "strategy": "x"}}}"#,
                "pool.a.strategy"
            ),
            (
                #"{"pools": ["a"], "pool": {"a": {"id": "r:1", "providers": ["x"]}}}"#,
                "pool.providers"
            ),
            (#"{"issuers": ["a"], "issuer": {"a": {"issuer": "i"}}}"#, "issuer.a.keysFile"),
            (
                #"{"accessKeys": ["a"], "accessKey": {"a": {"id": "AKIA1"}}}"#,
                "accessKey.a.secretFile"
            ),
            (#"{"tls": {"keyFile": "k"}}"#, "tls.certificateFile"),
            (#"{"tls": {"certificateFile": "c"}}"#, "tls.keyFile"),
            (#"{"adminTokenFile": "none-such"}"#, "adminTokenFile"),
        ])
    func mistakes(_ json: String, _ key: String) throws {
        let error = try failure(json)
        #expect(error.key == key)
        #expect(!error.allowed.isEmpty)
    }

    @Test("a file that is none, or no JSON object, is told")
    func unreadable() throws {
        for content in ["", "[]", "{", "{\"a\": [{\"b\": 1}]}"] {
            #expect(try failure(content).key == "config")
        }
        let error = #expect(throws: HubSettingsError.self) {
            try HubSettings.read(file: "\(directory.path)/none", environment: [:])
        }
        #expect(error?.key == "config")
    }

    @Test("numbers and lists in the environment")
    func environment() throws {
        let settings = try read(
            nil,
            [
                "TIDEMARK_LISTEN_PORT": "81", "TIDEMARK_METRICS_IS_OPEN": "true",
                "TIDEMARK_CORS_ORIGINS": "https://a.example, https://b.example",
                "TIDEMARK_PROTECTION_REQUESTS_PER_SECOND_OF_ADDRESS": "7",
            ])
        #expect(settings.port == 81)
        #expect(settings.hasOpenMetrics)
        #expect(settings.allowedOrigins == ["https://a.example", "https://b.example"])
        #expect(settings.protection.requestsPerSecondOfAddress == 7)
        #expect(try failure(nil, ["TIDEMARK_LISTEN_PORT": "x"]).key == "listen.port")
    }

    @Test("a shared secret is good for HS256 alone, and public keys never")
    func algorithms() throws {
        var issuer = IssuerSettings(
            provider: "p", issuer: "i", audiences: ["a"], algorithms: [.hs256, .rs256],
            keys: .shared(HubSecret(String(repeating: "s", count: 32))))
        var settings = HubSettings()
        settings.issuers = [issuer]
        #expect(throws: HubSettingsError.self) { try settings.check() }
        issuer.algorithms = [.hs256]
        settings.issuers = [issuer]
        try settings.check()
        issuer.keys = .url("https://p.example/keys")
        settings.issuers = [issuer]
        #expect(throws: HubSettingsError.self) { try settings.check() }
    }
}
