import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

extension SyncEvent {
    /// Short, for comparing.
    var label: String {
        func text(_ keys: [[UInt8]]) -> String {
            keys.map { String(decoding: $0, as: UTF8.self) }.sorted().joined(separator: ",")
        }
        return switch self {
        case .started(let datasets): "started \(datasets?.joined(separator: ",") ?? "all")"
        case .localChanged(let dataset, let keys): "local \(dataset) \(text(keys))"
        case .remoteChanged(let dataset, let keys): "remote \(dataset) \(text(keys))"
        case .conflictsSettled(let dataset, let settled):
            "settled \(dataset) \(text(settled.map(\.key)))"
        case .conflictsPending(let dataset, let keys): "pending \(dataset) \(text(keys))"
        case .recordsFailed(let dataset, let keys): "failed \(dataset) \(text(keys))"
        case .quarantined(let dataset, let keys): "quarantined \(dataset) \(text(keys))"
        case .overlooked(let dataset, let keys): "overlooked \(dataset) \(text(keys))"
        case .datasetDeletedRemotely(let deletion, let action):
            "deleted \(deletion.dataset) \(action)"
        case .datasetsMerged(let datasets, _):
            "merged \(datasets.merged.map(\.name).joined(separator: ",")) into \(datasets.dataset)"
        case .backgroundFailure(let error): "background \(error.code)"
        case .ended(let report):
            "ended \(report.datasets.map(\.dataset).joined(separator: ","))"
        case .failed(let error): "failed \(error.code)"
        case .lost(let count): "lost \(count)"
        }
    }

    var isCompletion: Bool {
        switch self {
        case .ended, .failed: true
        default: false
        }
    }

    var isStart: Bool {
        if case .started = self { true } else { false }
    }
}

extension SyncEvents.Iterator {
    /// Everything up to and including that event.
    mutating func skip(
        to label: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        while let event = await next() {
            if event.label == label { return }
        }
        Issue.record("the events ended before \(label)", sourceLocation: sourceLocation)
    }
}

/// Everything up to and including so many completions.
func collect(_ events: SyncEvents, completions: Int) async -> [SyncEvent] {
    var seen: [SyncEvent] = []
    var left = completions
    guard left > 0 else { return [] }
    for await event in events {
        seen.append(event)
        left -= event.isCompletion ? 1 : 0
        if left == 0 { break }
    }
    return seen
}

/// Checks that runs do not overlap and that each ends in exactly one completion, its last event.
func expectOneCompletionEach(
    _ events: [SyncEvent], _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    var isUnderWay = false
    for event in events {
        if event.isStart {
            #expect(!isUnderWay, comment, sourceLocation: sourceLocation)
            isUnderWay = true
        } else {
            #expect(isUnderWay, comment, sourceLocation: sourceLocation)
            if event.isCompletion { isUnderWay = false }
        }
    }
    #expect(!isUnderWay, comment, sourceLocation: sourceLocation)
}

/// Fails messages by their number, counted from 1, and passes the others on.
final class CountingTransport: SyncTransport {
    private let inner: any SyncTransport
    private let fails: @Sendable (Int) -> SyncError?
    private let requests = Mutex<[[UInt8]]>([])

    init(_ inner: any SyncTransport, fails: @escaping @Sendable (Int) -> SyncError? = { _ in nil })
    {
        self.inner = inner
        self.fails = fails
    }

    var count: Int { requests.withLock { $0.count } }

    /// What was asked, taken apart.
    func messages() throws -> [SyncMessage] {
        try requests.withLock { $0 }.map { try SyncMessage(MessageFrame.decoded($0)) }
    }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let number = requests.withLock { requests in
            requests.append(request)
            return requests.count
        }
        if let error = fails(number) { throw error }
        return try await inner.send(request)
    }
}
