import Synchronization

/// A place for what a closure is told.
final class Box<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    /// The last one.
    var value: Value? { all.last }

    var all: [Value] { values.withLock { $0 } }

    func set(_ value: Value) {
        values.withLock { $0.append(value) }
    }

    func removeAll() {
        values.withLock { $0 = [] }
    }
}
