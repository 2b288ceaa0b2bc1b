import TestSupport
import Testing
import Tidemark

/// Expects a typed error of that kind, with a message fit to be shown; returns it.
@discardableResult
func expectError<Result>(
    _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Result
) -> StoreError? {
    do {
        _ = try body()
        Issue.record("no error, where \(code) was due", sourceLocation: sourceLocation)
        return nil
    } catch let error as StoreError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        #expect(!error.message.isEmpty, sourceLocation: sourceLocation)
        #expect(!error.description.contains("\n"), sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record("\(error) is no StoreError", sourceLocation: sourceLocation)
        return nil
    }
}

/// Runs a body with a seed, and names the seed with whatever it throws.
func withSeed(
    for test: String = #function, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (Seed) throws -> Void
) {
    let seed = Seed.drawn(for: test)
    do {
        try body(seed)
    } catch {
        Issue.record("TIDEMARK_SEED=\(seed): \(error)", sourceLocation: sourceLocation)
    }
}

/// Small segments and no durability: for tests of anything but durability.
func quickOptions() -> StoreOptions {
    StoreOptions(durability: .memory, author: "tester", segmentBytes: 1 << 20)
}

/// A store in a directory of its own, and one dataset in it.
struct StoreFixture {
    let directory: TemporaryDirectory
    let store: Store
    let dataset: Dataset

    init(_ options: StoreOptions = quickOptions()) throws {
        directory = try TemporaryDirectory()
        store = try Store.open(at: directory["store"], options: options)
        dataset = try store.dataset("main")
    }

    var path: String { store.path }

    /// Closes the store and opens it again.
    func reopened(_ options: StoreOptions = quickOptions()) throws -> (Store, Dataset) {
        try store.close()
        let store = try Store.open(at: path, options: options)
        return (store, try store.dataset("main"))
    }
}

/// A key or value from its text.
func bytes(_ text: String) -> [UInt8] {
    Array(text.utf8)
}

extension RecordCursor {
    /// The texts of all keys left.
    func keyTexts() throws -> [String?] {
        try collect().map(\.keyText)
    }
}
