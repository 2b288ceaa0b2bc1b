import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Every limit of an identity: the last that is allowed, the first that is not, and that nothing of
/// a refused call is there.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct UpdateLimitsTests {
    private static func expectRefused(
        _ kind: APIFailure.Kind, _ device: CognitoDevice, _ patches: [Patch],
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let before = try await device.list()
        let refused = try await refusal { try await device.sync(patches) }
        #expect(refused?.kind == kind, sourceLocation: location)
        let after = try await device.list()
        #expect(after.contents == before.contents, sourceLocation: location)
        #expect(after.datasetSyncCount == before.datasetSyncCount, sourceLocation: location)
    }

    @Test("records of a dataset")
    func records() async throws {
        var limits = HubLimits()
        limits.recordsPerDatasetMax = 3
        try await withCognitoDevice(limits: limits) { device, fixture in
            try await device.sync([.put("1", "a"), .put("1", "b"), .put("1", "c")])
            try await Self.expectRefused(.limitExceeded, device, [.put("1", "d")])
            try await device.sync([.put("2", "a", 1), .remove("b", 1), .put("1", "d")])
            // What replicas have made too large can be changed, but not made larger.
            try fixture.dataset().put("1", for: "e")
            try await device.sync([.put("3", "a", 2)])
            try await Self.expectRefused(.limitExceeded, device, [.put("1", "f")])
            try await device.sync([.remove("e", 3)])
        }
    }

    @Test("bytes of a dataset, counted of keys and values of what is there")
    func bytes() async throws {
        var limits = HubLimits()
        limits.datasetBytesMax = 10
        try await withCognitoDevice(limits: limits) { device, _ in
            try await device.sync([.put("1234", "a"), .put("123", "bc")])
            #expect(try await device.describe().dataStorage == 10)
            try await Self.expectRefused(.limitExceeded, device, [.put("12345", "a", 1)])
            try await Self.expectRefused(.limitExceeded, device, [.put("", "c")])
            try await device.sync([.remove("bc", 1)])
            #expect(try await device.describe().dataStorage == 5)
            try await device.sync([.put("123456789", "a", 1)])
            try await Self.expectRefused(.limitExceeded, device, [.put("ä12345678", "a", 3)])
        }
    }

    @Test("removals that are remembered")
    func tombstones() async throws {
        var limits = HubLimits()
        limits.recordsPerDatasetMax = 2
        limits.tombstonesPerRecordMax = 2
        try await withCognitoDevice(limits: limits) { device, _ in
            for index in 0..<4 { try await device.sync([.remove("k\(index)", 0)]) }
            try await Self.expectRefused(.limitExceeded, device, [.remove("k4", 0)])
            try await device.sync([.put("1", "k0", 1)])
            try await device.sync([.remove("k0", 5)])
        }
    }

    @Test("patches of a call")
    func patches() async throws {
        var limits = HubLimits()
        limits.patchesMax = 2
        try await withCognitoDevice(limits: limits) { device, _ in
            let three: [Patch] = [.put("1", "a"), .put("1", "b"), .put("1", "c")]
            try await Self.expectRefused(.limitExceeded, device, three)
            try await device.sync(Array(three.dropLast()))
        }
    }

    @Test("characters of keys and values, not bytes")
    func characters() async throws {
        var limits = HubLimits()
        limits.recordKeyMax = 4
        limits.recordValueMax = 5
        try await withCognitoDevice(limits: limits) { device, _ in
            try await device.sync([.put("öööää", "😀😀😀😀")])
            try await Self.expectRefused(.invalidParameter, device, [.put("1", "abcde")])
            try await Self.expectRefused(.invalidParameter, device, [.put("123456", "a")])
            try await Self.expectRefused(.invalidParameter, device, [.put("😀😀😀😀😀😀", "a")])
        }
    }

    @Test("the API's own limits of a key and a value")
    func defaults() async throws {
        try await withCognitoDevice { device, _ in
            try await device.sync([.put("1", String(repeating: "k", count: 1_024))])
            let long = String(repeating: "k", count: 1_025)
            try await Self.expectRefused(.invalidParameter, device, [.put("1", long)])
            let value = String(repeating: "v", count: 1_048_576)
            try await Self.expectRefused(.invalidParameter, device, [.put(value, "a")])
            try await Self.expectRefused(
                .limitExceeded, device, [.put(String(value.dropFirst()), "ab")])
        }
    }

    @Test("datasets of an identity, merged and replicas' ones too, but not those of others")
    func datasets() async throws {
        var limits = HubLimits()
        limits.datasetsPerIdentityMax = 3
        try await withCognito(limits: limits) { fixture in
            try await CognitoDevice(fixture: fixture, dataset: "a").sync([.put("1", "k")])
            try await CognitoDevice(fixture: fixture, dataset: "b").sync([.put("1", "k")])
            _ = try fixture.dataset("c")
            let fourth = CognitoDevice(fixture: fixture, dataset: "d")
            try await Self.expectRefused(.limitExceeded, fourth, [.put("1", "k")])
            let other = CognitoDevice(
                fixture: fixture, identity: "us-east-1:1111-aab", dataset: "d")
            try await other.sync([.put("1", "k")])
            try await CognitoDevice(fixture: fixture, dataset: "a").delete()
            try await fourth.sync([.put("1", "k")])
        }
    }

    @Test("names that datasets of an identity ever had, since each deletion is remembered")
    func names() async throws {
        var limits = HubLimits()
        limits.datasetsPerIdentityMax = 1
        try await withCognito(limits: limits) { fixture in
            for index in 0..<16 {
                let device = CognitoDevice(fixture: fixture, dataset: "d\(index)")
                try await device.sync([.put("1", "k")])
                try await device.delete()
            }
            let next = CognitoDevice(fixture: fixture, dataset: "another")
            try await Self.expectRefused(.limitExceeded, next, [.put("1", "k")])
            try await CognitoDevice(fixture: fixture, dataset: "d0").sync([.put("1", "k")])
            let other = CognitoDevice(
                fixture: fixture, identity: "us-east-1:1111-aab", dataset: "another")
            try await other.sync([.put("1", "k")])
        }
    }

    @Test("however many come at once, no identity gets more datasets than it may have")
    func datasetsAtOnce() async throws {
        var limits = HubLimits()
        limits.datasetsPerIdentityMax = 5
        try await withCognito(limits: limits) { fixture in
            let made = try await withThrowingTaskGroup(of: Bool.self) { group in
                for index in 0..<20 {
                    group.addTask {
                        let device = CognitoDevice(fixture: fixture, dataset: "d\(index)")
                        let failure = try await refusal { try await device.sync([.put("1", "k")]) }
                        if let failure { #expect(failure.kind == .limitExceeded) }
                        return failure == nil
                    }
                }
                var made = 0
                for try await isMade in group where isMade { made += 1 }
                return made
            }
            #expect(made == 5)
            #expect(try fixture.store.datasetNames().filter { !$0.hasPrefix("hub:") }.count == 5)
        }
    }

    @Test("an id of a device has 1 to 256 characters")
    func devices() async throws {
        try await withCognito { fixture in
            for id in ["", String(repeating: "d", count: 257)] {
                let device = CognitoDevice(fixture: fixture, deviceID: id)
                let refused = try await refusal { try await device.sync([.put("1", "a")]) }
                #expect(refused?.kind == .invalidParameter)
            }
            let id = String(repeating: "ä", count: 256)
            let device = CognitoDevice(fixture: fixture, deviceID: id)
            try await device.sync([.put("1", "a")])
            #expect(try await device.list().records.first?.lastModifiedBy == id)
        }
    }
}
