extension SyncOptions {
    /// Runs work that ends soon after it is cancelled, and cancels it once the deadline has
    /// passed.
    ///
    /// - Returns: what came of the work, and whether it was cancelled for being late.
    func withinDeadline<Outcome: Sendable>(
        _ work: @escaping @Sendable () async -> Outcome
    ) async -> (outcome: Outcome, isLate: Bool) {
        guard let deadline else { return (await work(), false) }
        let clock = clock
        return await withTaskGroup(of: Event<Outcome>.self) { group in
            group.addTask { .ended(await work()) }
            group.addTask {
                do {
                    try await clock.sleep(for: deadline)
                    return .late
                } catch {
                    return .cut
                }
            }
            var isLate = false
            for await event in group {
                switch event {
                case .ended(let outcome):
                    group.cancelAll()
                    return (outcome, isLate)
                case .late:
                    isLate = true
                    group.cancelAll()
                case .cut:
                    // The task was cancelled from outside; the work hears of it, too.
                    break
                }
            }
            preconditionFailure("work under a deadline ended without an outcome")
        }
    }

    /// An error of an exchange that was cancelled for being late, as its caller is told.
    func timedOut(_ error: SyncError) -> SyncError {
        guard error.code == .cancelled, let deadline else { return error }
        return SyncError(
            .timedOut,
            "the exchange did not end within \(deadline); what was applied stays, repeat it to "
                + "go on or give it a later deadline", peer: error.peer, dataset: error.dataset)
    }
}

private enum Event<Outcome: Sendable>: Sendable {
    case ended(Outcome)
    case late
    case cut
}
