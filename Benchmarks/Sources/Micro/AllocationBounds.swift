/// How many allocations one operation of each case may cost: the promise that continuous
/// integration holds the store to. Times are printed and never judged.
///
/// 0 means exactly none. ``amortised`` means none for the operation itself, while memory that is
/// taken ahead for thousands of them (a chunk of a memtable's arena, the growth of a table) may
/// show; a batch is a hundred operations and shows more of it. Anything else is what the caller
/// asked for, or what making a cursor or reading a block from its file takes.
enum AllocationBounds {
    static let amortised = 0.01

    static let table: [String: Double] = [
        "put": amortised,
        "put-array": amortised,
        "put-sealing": amortised,
        "delete": amortised,
        "batch-100": 10 * amortised,
        "get-memtable": 0,
        "get-sealed": 0,
        "get-missing": 0,
        "get-array": 1,
        "get-uncached": 3.2,
        "contains": 0,
        "contains-missing": 0,
        "cursor-step": amortised,
        "cursor-step-sealed": amortised,
        "cursor-1000": 6,
    ]

    /// nil if the count is within the bound, else a message that names case, bound and count.
    static func excess(of name: String, count: Double, bound: Double) -> String? {
        // A comparison that a count which is no number fails, too.
        guard !(count <= bound) else { return nil }
        return "\(name): \(shown(count)) allocations an operation, and the bound is \(shown(bound))"
    }

    private static func shown(_ number: Double) -> String {
        let shortened = (number * 10_000).rounded() / 10_000
        return shortened == shortened.rounded() && abs(shortened) < 1e15
            ? String(Int(shortened)) : String(shortened)
    }
}
