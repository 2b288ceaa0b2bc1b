/// One hot path: what is made ready, and what is then done over and over.
struct MicroCase: Sendable {
    let name: String
    /// Whether its operations survive the end of the process, or write nothing at all.
    let isWriting: Bool
    /// Operations in a round. In the end all rounds of a case have gone to one fixture.
    let operationCount: Int
    /// Whether what other threads allocate meanwhile counts, too.
    let countsAllThreads: Bool
    let prepare: @Sendable (Int) throws -> Fixture
    /// Does so many operations. It allocates nothing itself but what the case is about.
    let run: @Sendable (Fixture, Int) throws -> Void

    init(
        _ name: String, isWriting: Bool = false, operationCount: Int = 40_000,
        countsAllThreads: Bool = false, prepare: @escaping @Sendable (Int) throws -> Fixture,
        run: @escaping @Sendable (Fixture, Int) throws -> Void
    ) {
        self.name = name
        self.isWriting = isWriting
        self.operationCount = operationCount
        self.countsAllThreads = countsAllThreads
        self.prepare = prepare
        self.run = run
    }

    static let all = writing + reading + walking

    static func named(_ name: String) -> MicroCase? {
        all.first { $0.name == name }
    }
}

/// Where the results of reads go, so that no optimiser may leave a read out. They are checked, too:
/// a case that found less than it must have found has measured something else.
struct Tally {
    private var found = 0

    @inline(__always)
    mutating func add(_ count: Int) {
        found += count
    }

    func expect(_ count: Int) throws {
        guard found == count else {
            throw MicroFailure("found \(found) where \(count) were to be found")
        }
    }
}
