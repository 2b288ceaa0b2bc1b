// swift-tools-version:6.2
import PackageDescription

/// The strictest settings that build cleanly together: whatever they find is an error here,
/// so that a warning never has time to become familiar.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    // The mistakes that the simulator is tried with: no release build has them.
    .define("PLANTED_BUGS", .when(configuration: .debug)),
]

/// What the tests spend their time in: the store as it is handed out, optimised, in a debug build,
/// its assertions included. Only the scripts in `tools` ask for it, by a variable of the
/// environment: a package with such flags can be no dependency of a released one. A build by hand
/// is without, and so sooner made and easier to debug.
let optimised: [SwiftSetting] =
    (Context.environment["TIDEMARK_OPTIMISED"] ?? "").isEmpty
    ? settings
    : settings + [
        .unsafeFlags(
            ["-O", "-wmo", "-num-threads", "2", "-assert-config", "Debug"],
            .when(configuration: .debug))
    ]

/// Products of other packages are used only with the traits `Command`, `Networking` and
/// `Observability`, which are on by default. A service that embeds the store alone names this
/// package with `traits: []` and then resolves none of them.
func networking(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Networking"]))
}

/// What the command line takes beside the store.
func command(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Command"]))
}

/// A target of this package that is there with the network alone.
func networked(_ target: String) -> Target.Dependency {
    .target(name: target, condition: .when(traits: ["Networking"]))
}

/// swift-log and swift-metrics.
func observability(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: ["Observability"]))
}

let package = Package(
    name: "tidemark",
    products: [
        .library(name: "Tidemark", targets: ["Tidemark"]),
        .library(name: "TidemarkSync", targets: ["TidemarkSync"]),
        .library(name: "TidemarkObservability", targets: ["TidemarkObservability"]),
        .library(name: "TidemarkHTTP", targets: ["TidemarkHTTP"]),
        .library(name: "TidemarkHub", targets: ["TidemarkHub"]),
        .executable(name: "tidemark", targets: ["tidemark"]),
    ],
    traits: [
        .trait(
            name: "Command",
            description: "The command line tool; alone, it has all but what needs a network."),
        .trait(
            name: "Networking",
            description: "The HTTP transport and the hub, and what the tool does with them.",
            enabledTraits: ["Observability"]),
        .trait(
            name: "Observability",
            description: "What happens in a store, passed on to swift-log and swift-metrics."),
        .default(enabledTraits: ["Command", "Networking", "Observability"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration.git", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto.git", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0"),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1"),
        .package(
            url: "https://github.com/swift-server/async-http-client.git", from: "1.37.0"),
        .package(
            url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
        .package(url: "https://github.com/vapor/jwt-kit.git", from: "5.7.1"),
    ],
    targets: [
        .systemLibrary(
            name: "CLZ4", pkgConfig: "liblz4",
            providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]),
        .systemLibrary(
            name: "CXXHash", pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]),
        .systemLibrary(name: "CTidemark"),
        .target(
            name: "Tidemark", dependencies: ["CLZ4", "CTidemark", "CXXHash"],
            swiftSettings: optimised),
        .target(name: "TidemarkSync", dependencies: ["Tidemark"], swiftSettings: optimised),
        .target(
            name: "TidemarkObservability",
            dependencies: [
                "Tidemark",
                observability("Logging", "swift-log"),
                observability("Metrics", "swift-metrics"),
            ],
            swiftSettings: settings),
        .target(
            name: "TidemarkHTTP",
            dependencies: [
                "Tidemark", "TidemarkSync",
                networking("AsyncHTTPClient", "async-http-client"),
                networking("NIOCore", "swift-nio"),
                networking("NIOHTTP1", "swift-nio"),
                networking("NIOPosix", "swift-nio"),
            ],
            swiftSettings: settings),
        .target(
            name: "TidemarkHub",
            dependencies: [
                "Tidemark", "TidemarkSync", "TidemarkHTTP",
                networking("AsyncHTTPClient", "async-http-client"),
                networking("Configuration", "swift-configuration"),
                networking("CoreMetrics", "swift-metrics"),
                networking("Crypto", "swift-crypto"),
                networking("Hummingbird", "hummingbird"),
                networking("HummingbirdCore", "hummingbird"),
                networking("HummingbirdHTTP2", "hummingbird"),
                networking("HummingbirdTLS", "hummingbird"),
                networking("HTTPTypes", "swift-http-types"),
                networking("JWTKit", "jwt-kit"),
                networking("Logging", "swift-log"),
                networking("Metrics", "swift-metrics"),
                networking("NIOCore", "swift-nio"),
                networking("NIOHTTP1", "swift-nio"),
                networking("NIOPosix", "swift-nio"),
                networking("NIOSSL", "swift-nio-ssl"),
                networking("ServiceLifecycle", "swift-service-lifecycle"),
                networking("Tracing", "swift-distributed-tracing"),
            ],
            // In the program by way of tools/embed-console.
            exclude: ["Console/Static"],
            swiftSettings: settings),
        .executableTarget(
            name: "tidemark",
            dependencies: [
                "Tidemark", "TidemarkSync",
                networked("TidemarkHTTP"), networked("TidemarkHub"),
                networked("TidemarkObservability"),
                command("ArgumentParser", "swift-argument-parser"),
                command("UnixSignals", "swift-service-lifecycle"),
                networking("Logging", "swift-log"),
                networking("ServiceLifecycle", "swift-service-lifecycle"),
            ],
            path: "tools/tidemark",
            swiftSettings: settings),
        .executableTarget(
            name: "demo-app",
            dependencies: ["Tidemark", "TidemarkSync", networked("TidemarkHTTP")],
            path: "tools/demo-app",
            swiftSettings: settings),
        .target(
            name: "TestSupport", dependencies: ["Tidemark", "TidemarkSync"],
            path: "Tests/TestSupport", swiftSettings: optimised),
        .executableTarget(
            name: "CrashWriter", dependencies: ["Tidemark", "TestSupport"],
            path: "Tests/CrashWriter", swiftSettings: settings),
        .executableTarget(
            name: "Soak", dependencies: ["Tidemark", "TestSupport"],
            path: "Tests/Soak", swiftSettings: settings),
        .executableTarget(
            name: "Torture",
            dependencies: [
                "Tidemark", "TidemarkSync", "TidemarkHTTP", "TidemarkHub", "TestSupport",
                networking("Logging", "swift-log"),
                networking("ServiceLifecycle", "swift-service-lifecycle"),
            ],
            path: "Tests/Torture", swiftSettings: settings),
        .testTarget(
            name: "TortureTests", dependencies: ["Tidemark", "TestSupport", "Torture"],
            swiftSettings: settings),
        .target(name: "Specification", path: "Tests/Specification", swiftSettings: optimised),
        .target(
            name: "Simulation", dependencies: ["Tidemark", "TidemarkSync", "TestSupport"],
            path: "Tests/Simulation", swiftSettings: optimised),
        .executableTarget(
            name: "Simulate", dependencies: ["Tidemark", "Simulation", "TestSupport"],
            path: "Tests/Simulate", swiftSettings: settings),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Tidemark", "TidemarkSync", "Simulation", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "TidemarkTests",
            dependencies: ["Tidemark", "TestSupport", "CrashWriter", "CXXHash"],
            exclude: ["Golden"],
            swiftSettings: settings),
        .testTarget(
            name: "TidemarkSyncTests",
            dependencies: ["Tidemark", "TidemarkSync", "Specification", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "TidemarkObservabilityTests",
            dependencies: [
                "Tidemark", "TidemarkObservability", "TestSupport",
                observability("InMemoryLogging", "swift-log"),
                observability("Logging", "swift-log"),
                observability("Metrics", "swift-metrics"),
                observability("MetricsTestKit", "swift-metrics"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "TidemarkHubTests",
            dependencies: [
                "Tidemark", "TidemarkSync", "TidemarkHTTP", "TidemarkHub", "TestSupport",
                networking("AsyncHTTPClient", "async-http-client"),
                networking("CoreMetrics", "swift-metrics"),
                networking("Hummingbird", "hummingbird"),
                networking("HummingbirdCore", "hummingbird"),
                networking("HummingbirdHTTP2", "hummingbird"),
                networking("HTTPTypes", "swift-http-types"),
                networking("JWTKit", "jwt-kit"),
                networking("Logging", "swift-log"),
                networking("NIOCore", "swift-nio"),
                networking("NIOHTTP1", "swift-nio"),
                networking("NIOSSL", "swift-nio-ssl"),
                networking("ServiceLifecycle", "swift-service-lifecycle"),
                networking("Tracing", "swift-distributed-tracing"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CommandLineTests",
            dependencies: ["Tidemark", "TidemarkSync", "TidemarkHub", "TestSupport", "tidemark"],
            exclude: ["Golden"],
            swiftSettings: settings),
    ]
)
