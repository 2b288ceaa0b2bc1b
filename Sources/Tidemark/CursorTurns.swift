/// How many records a cursor may still give out, and whether it is giving one out now.
///
/// What a cursor hands to a closure lies where the cursor stands: in a block that its next step may
/// let go of. So a closure that moves the cursor which has called it would look at memory that is
/// gone. Cursors are classes, so the compiler cannot forbid it; this does, by an error.
struct CursorTurns {
    /// Less than 0 while one is on its way: then what is left is the number without its sign.
    private var remaining: Int
    /// Why the cursor cannot go on.
    private var failure: StoreError?

    /// - Parameter limit: nil for no bound.
    init(limit: Int?) {
        remaining = max(0, limit ?? .max)
    }

    /// False if there is none left. If true, ``end()`` must follow.
    ///
    /// - Throws: `invalidArgument` if one is on its way; what ``fail(_:)`` was told.
    @inline(__always)
    mutating func begin() throws(StoreError) -> Bool {
        guard remaining > 0 else {
            guard remaining == 0 else { throw Self.isOnItsWay }
            if let failure { throw failure }
            return false
        }
        remaining = -remaining
        return true
    }

    @inline(__always)
    mutating func end() {
        remaining = -remaining - 1
    }

    /// Ends the walk where a step failed: what comes next is not known, and nobody is to take it
    /// for the end. Between ``begin()`` and ``end()``.
    mutating func fail(_ error: StoreError) {
        failure = error
        remaining = -1
    }

    private static var isOnItsWay: StoreError {
        StoreError(
            .invalidArgument,
            "a closure has moved the cursor that has called it; let it return first, or use "
                + "another cursor")
    }
}
