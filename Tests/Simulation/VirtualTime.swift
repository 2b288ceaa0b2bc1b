/// What is to happen when, in milliseconds since the simulation began. Time passes only when
/// somebody asks for the next event, and then at once.
final class VirtualTime {
    private struct Event {
        let due: UInt64
        /// Events of one moment happen in the order in which they were planned.
        let number: UInt64
        let body: () -> Void
    }

    private(set) var now: UInt64 = 0
    /// The next event last.
    private var events: [Event] = []
    private var plannedCount: UInt64 = 0

    func schedule(after milliseconds: UInt64, _ body: @escaping () -> Void) {
        plannedCount += 1
        let event = Event(due: now + milliseconds, number: plannedCount, body: body)
        var (low, high) = (0, events.count)
        while low < high {
            let middle = (low + high) / 2
            let other = events[middle]
            if (other.due, other.number) > (event.due, event.number) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        events.insert(event, at: low)
    }

    /// When the next event is due; nil if nothing is to happen any more.
    var nextDue: UInt64? { events.last?.due }

    /// Takes the next event if it is due by then, and sets the clock to it.
    func next(by limit: UInt64) -> (() -> Void)? {
        guard let event = events.last, event.due <= limit else { return nil }
        events.removeLast()
        now = max(now, event.due)
        return event.body
    }

    func removeAll() {
        events.removeAll()
    }

    func pass(to moment: UInt64) {
        now = max(now, moment)
    }
}
