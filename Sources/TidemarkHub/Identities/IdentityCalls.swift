import Synchronization

/// Calls that are under way, by the identities that they are of or about: so that nothing is moved
/// or deleted while somebody who was let in before may still write to it.
///
/// In this order nothing falls between, since all of it goes through one mutex:
///
///     a call:               begin -> look whether the identity is there -> work -> end
///     a merge or deletion:  note that it is not -> end the epoch -> look whether all is quiet
///
/// A call that begins after that look finds out that the identity is not there.
final class IdentityCalls: Sendable {
    /// Only those that have any: as many as requests at most.
    private let counts = Mutex<[IdentityID: Int]>([:])

    func begin(_ identity: IdentityID) {
        counts.withLock { $0[identity, default: 0] += 1 }
    }

    /// Once for each ``begin(_:)``.
    func end(_ identity: IdentityID) {
        counts.withLock { counts in
            guard let count = counts[identity] else { return }
            counts[identity] = count > 1 ? count - 1 : nil
        }
    }

    /// Whether none of them has a call under way.
    func areQuiet(_ identities: Set<IdentityID>) -> Bool {
        counts.withLock { counts in identities.allSatisfy { counts[$0] == nil } }
    }
}

/// That a call was let in. Its identity is neither merged nor deleted before it has ended.
struct IdentityPass: Sendable {
    private let identity: IdentityID?
    private let calls: IdentityCalls

    /// - Parameter identity: that the call is of or about, and that has begun; nil for none.
    init(_ identity: IdentityID?, _ calls: IdentityCalls) {
        self.identity = identity
        self.calls = calls
    }

    /// To be called once, when nothing of the call is under way any more.
    func end() {
        if let identity { calls.end(identity) }
    }
}
