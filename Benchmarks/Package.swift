// swift-tools-version:6.2
import PackageDescription

/// As strict as the library's own package, but for memory safety: these are drivers of C code.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A package of its own, so that the library never depends on its peers.
let package = Package(
    name: "tidemark-benchmarks",
    dependencies: [
        .package(name: "tidemark", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.16.2"),
        .package(
            url: "https://github.com/HdrHistogram/hdrhistogram-swift.git", from: "0.2.0"),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1"),
    ],
    targets: [
        .target(
            name: "CPeers",
            // Debian builds LevelDB without type information, so no subclass of its may have any.
            cxxSettings: [.unsafeFlags(["-O3", "-DNDEBUG", "-fno-rtti"])],
            linkerSettings: [
                .linkedLibrary("rocksdb"), .linkedLibrary("leveldb"), .linkedLibrary("lmdb"),
                .linkedLibrary("sqlite3"),
            ]),
        .target(
            name: "CLimits",
            cSettings: [.unsafeFlags(["-O3", "-DNDEBUG"])],
            linkerSettings: [.linkedLibrary("lz4"), .linkedLibrary("xxhash")]),
        .target(name: "BenchmarkRows", swiftSettings: settings),
        .target(name: "CTicks", cSettings: [.unsafeFlags(["-O3"])]),
        .executableTarget(
            name: "side-by-side",
            dependencies: [
                "BenchmarkRows", "CPeers", "CLimits", "CTicks",
                .product(name: "Tidemark", package: "tidemark"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            path: "Sources/SideBySide",
            swiftSettings: settings),
        .executableTarget(
            name: "sync-bench",
            dependencies: [
                "BenchmarkRows", "CLimits",
                .product(name: "Tidemark", package: "tidemark"),
                .product(name: "TidemarkSync", package: "tidemark"),
                .product(name: "TidemarkHTTP", package: "tidemark"),
                .product(name: "TidemarkHub", package: "tidemark"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ],
            path: "Sources/SyncBench",
            swiftSettings: settings),
        // Micro benchmarks of the store alone: they build without any peer.
        .target(name: "CAllocations"),
        .target(name: "CInstructions"),
        .executableTarget(
            name: "micro",
            dependencies: [
                "BenchmarkRows", "CAllocations", "CInstructions",
                .product(name: "Tidemark", package: "tidemark"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Sources/Micro",
            // In a debug build too: what it counts are the allocations of optimised code.
            swiftSettings: settings + [.unsafeFlags(["-O"])]),
        .testTarget(name: "PeerTests", dependencies: ["CPeers"], swiftSettings: settings),
        .testTarget(name: "LimitTests", dependencies: ["CLimits"], swiftSettings: settings),
    ],
    cxxLanguageStandard: .cxx17
)
