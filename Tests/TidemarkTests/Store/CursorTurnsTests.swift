import TestSupport
import Testing
import Tidemark

/// What a cursor hands to a closure lies where the cursor stands, and must lie there until the
/// closure has returned.
@Suite("A closure that moves the cursor which has called it")
struct CursorTurnsTests {
    let fixture: StoreFixture

    init() throws {
        var options = quickOptions()
        options.historyVersions = 5
        fixture = try StoreFixture(options)
        // Of more than one block, so that a step may let go of what the closure looks at.
        for number in 0..<200 {
            try fixture.dataset.put(
                String(repeating: "\(number % 10)", count: 500), for: "key \(1_000 + number)")
        }
        try fixture.store.compact()
    }

    /// Walks by a step that calls a closure, from which it steps again, once.
    private func refuses<Cursor>(
        _ cursor: Cursor, _ step: (Cursor, () -> Void) throws -> Bool,
        again: @escaping (Cursor) throws -> Void
    ) throws {
        var count = 0
        var refusals = 0
        while try step(
            cursor,
            {
                count += 1
                if expectError(.invalidArgument, { try again(cursor) }) != nil { refusals += 1 }
            })
        {}
        #expect(count == 200 && refusals == 200, "the walk goes on as if nothing had happened")
    }

    @Test("is refused by a cursor over records", arguments: [ScanOrder.forward, .backward])
    func records(order: ScanOrder) throws {
        try refuses(
            try fixture.dataset.records(order: order),
            { cursor, body in try cursor.withNext { _, _ in body() } != nil },
            again: { _ = try $0.next() })
        try refuses(
            try fixture.dataset.records(order: order),
            { cursor, body in try cursor.withNext { _, _ in body() } != nil },
            again: { _ = try $0.withNext { _, _ in } })
    }

    @Test("is refused by a cursor over keys", arguments: [ScanOrder.forward, .backward])
    func keys(order: ScanOrder) throws {
        try refuses(
            try fixture.dataset.keys(order: order),
            { cursor, body in try cursor.withNext { _ in body() } != nil },
            again: { _ = try $0.next() })
    }

    @Test("is refused by cursors of a transaction")
    func transaction() throws {
        try fixture.store.transaction { transaction in
            try refuses(
                try transaction.records(of: fixture.dataset),
                { cursor, body in try cursor.withNext { _, _ in body() } != nil },
                again: { _ = try $0.next() })
            try refuses(
                try transaction.keys(of: fixture.dataset),
                { cursor, body in try cursor.withNext { _ in body() } != nil },
                again: { _ = try $0.next() })
        }
    }

    @Test("A limit below nothing is nothing")
    func negativeLimit() throws {
        #expect(try fixture.dataset.records(limit: -3).collect().isEmpty)
        #expect(try fixture.dataset.keys(limit: -3).collect().isEmpty)
    }
}
