/// A stretch of time, one after the other in a chain: keeps what was given to it until neither it
/// nor any stretch before it is held by anyone.
///
/// Whoever looks at the past holds the era of what it sees. Eras are linked forward, so that the
/// oldest one that is held holds all that came after it, and what was kept in any of those.
///
/// Thread rule: `keep` and `begin` under the lock of the chain's owner, and on its last era alone;
/// letting go from anywhere.
final class Era: @unchecked Sendable {
    // Unchecked: only the last era of a chain changes, under the lock of its owner; an earlier one
    // is only let go, when nobody else can hold it any more.

    private var kept: [AnyObject] = []
    private var next: Era?

    init() {}

    deinit {
        // One after the other: a chain of thousands would not fit on the stack by recursion.
        var rest = next.take()
        while isKnownUniquelyReferenced(&rest) {
            rest = rest?.next.take()
        }
    }

    func keep(_ thing: AnyObject) {
        kept.append(thing)
    }

    /// Ends this era and begins the one that follows.
    func end(before following: Era) {
        precondition(next == nil, "an era ends once")
        next = following
    }
}
