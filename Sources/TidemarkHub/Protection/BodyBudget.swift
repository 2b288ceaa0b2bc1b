import Hummingbird
import Synchronization

/// How many bytes of bodies are in memory, in all: of requests, and of answers that are large.
final class BodyBudget: Sendable {
    private let held = Atomic<Int>(0)
    private let bytesMax: Int

    init(bytesMax: Int) {
        self.bytesMax = bytesMax
    }

    var bytes: Int { held.load(ordering: .relaxed) }

    /// - Parameter own: bytes that the same request has taken before.
    fileprivate func take(_ count: Int, beside own: Int) -> Bool {
        let (before, after) = held.wrappingAdd(count, ordering: .relaxed)
        guard after <= bytesMax || before == own else {
            held.wrappingSubtract(count, ordering: .relaxed)
            return false
        }
        return true
    }

    fileprivate func give(_ count: Int) {
        held.wrappingSubtract(count, ordering: .relaxed)
    }
}

/// The share of one request, which is given back when nobody has it any more.
final class BodyShare: Sendable {
    private let budget: BodyBudget
    private let bytes = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)

    init(_ budget: BodyBudget) {
        self.budget = budget
    }

    /// Sees to it that the share has so many bytes.
    ///
    /// - Returns: false if there is no room for them. One request alone has always room: it is
    ///   bounded by itself.
    func reach(_ count: Int) -> Bool {
        let own = bytes.load(ordering: .relaxed)
        let missing = count - own
        guard missing > 0 else { return true }
        guard budget.take(missing, beside: own) else { return false }
        bytes.wrappingAdd(missing, ordering: .relaxed)
        return true
    }

    /// The body has been read to its end.
    func finish() {
        isOver.store(true, ordering: .relaxed)
    }

    var isFinished: Bool { isOver.load(ordering: .relaxed) }

    /// Smaller answers are not counted: they go out with what a connection holds anyway.
    static let answerBytesMin = 32_768

    /// The body of an answer, which has room in this share until the other side has taken it.
    ///
    /// - Returns: nil if there is no room for it.
    func holding(_ body: ResponseBody) -> ResponseBody? {
        guard let count = body.contentLength, count >= Self.answerBytesMin else { return body }
        guard reach(bytes.load(ordering: .relaxed) + count) else { return nil }
        return ResponseBody(contentLength: count) { writer in
            try await body.write(writer)
            // The end is written by now, and that waits until little is left to be sent.
            withExtendedLifetime(self) {}
        }
    }

    deinit {
        budget.give(bytes.load(ordering: .relaxed))
    }
}
