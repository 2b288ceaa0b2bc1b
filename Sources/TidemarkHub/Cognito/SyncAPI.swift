/// Answers some of the operations.
protocol SyncOperationHandler: Sendable {
    var operations: Set<SyncOperation> { get }

    /// The JSON of the answer, whose status is 200.
    ///
    /// - Throws: what the client is told.
    func answer(_ call: SyncCall) async throws(APIFailure) -> [UInt8]
}

/// Hands each operation to the part of the hub that answers it.
struct SyncAPI: Sendable {
    private let handlers: [SyncOperation: any SyncOperationHandler]

    /// - Parameter handlers: that answer each operation, and none of them two: anything else is a
    ///   mistake in the hub, and traps when it starts.
    init(handlers: [any SyncOperationHandler]) {
        var table: [SyncOperation: any SyncOperationHandler] = [:]
        for handler in handlers {
            for operation in handler.operations {
                precondition(
                    table.updateValue(handler, forKey: operation) == nil,
                    "\(operation.rawValue) is answered by two parts")
            }
        }
        let missing = SyncOperation.allCases.filter { table[$0] == nil }
        precondition(missing.isEmpty, "nobody answers \(missing.map(\.rawValue))")
        self.handlers = table
    }

    /// - Throws: what the client is told.
    func answer(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        guard let handler = handlers[call.route.operation] else {
            throw APIFailure(.unknownOperation, "no operation has this path")
        }
        return try await handler.answer(call)
    }
}
