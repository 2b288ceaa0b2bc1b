import Crypto
import Synchronization
import TidemarkSync

/// Who is signed in to the console: in memory, so a restart ends all of them, and no more than
/// ``ConsoleLimits/sessionsMax``.
///
/// A session is named by 256 random bits in a cookie, of which only a digest is kept. Each has a
/// second secret that only the page knows, for the header of whatever changes anything: a page of
/// another origin can have the browser send the cookie, but cannot read that.
final class ConsoleSessions: Sendable {
    struct Session: Hashable, Sendable {
        /// Of the cookie's value.
        let digest: [UInt8]
        /// What a request that changes anything must carry in its header.
        let token: String
        /// Milliseconds since 1970.
        let endsAt: UInt64
        fileprivate(set) var usedAt: UInt64

        /// By which the audit speaks of it: too little of the digest to be of use to anybody.
        var name: String { Digests.hexadecimal(Array(digest.prefix(4))) }
    }

    private let clock: any SyncEnvironment
    private let sessions = Mutex<[Session]>([])

    init(clock: any SyncEnvironment) {
        self.clock = clock
    }

    var count: Int { sessions.withLock { $0.count } }

    /// Begins a session.
    ///
    /// - Returns: the value of its cookie, which is told once.
    func open() -> (cookie: String, session: Session) {
        let (cookie, now) = (Self.drawn(), clock.now())
        let session = Session(
            digest: Self.digest(of: cookie), token: Self.drawn(),
            endsAt: now + ConsoleLimits.sessionMilliseconds, usedAt: now)
        sessions.withLock { sessions in
            sessions.removeAll { !Self.isGood($0, now) }
            if sessions.count >= ConsoleLimits.sessionsMax,
                let oldest = sessions.indices.min(by: {
                    sessions[$0].usedAt < sessions[$1].usedAt
                })
            {
                sessions.remove(at: oldest)
            }
            sessions.append(session)
        }
        return (cookie, session)
    }

    /// The session of a cookie, which counts as used; nil if it is none, or over.
    func session(of cookie: String) -> Session? {
        let (digest, now) = (Self.digest(of: cookie), clock.now())
        return sessions.withLock { sessions in
            guard let index = Self.index(of: digest, in: sessions),
                Self.isGood(sessions[index], now)
            else { return nil }
            sessions[index].usedAt = max(sessions[index].usedAt, now)
            return sessions[index]
        }
    }

    /// Whether a session goes on, without using it.
    func isOpen(_ session: Session) -> Bool {
        let now = clock.now()
        return sessions.withLock { sessions in
            Self.index(of: session.digest, in: sessions).map { Self.isGood(sessions[$0], now) }
                ?? false
        }
    }

    func close(_ session: Session) {
        sessions.withLock { sessions in
            if let index = Self.index(of: session.digest, in: sessions) {
                sessions.remove(at: index)
            }
        }
    }

    /// All of them are compared to their ends: which one it was shows in no time.
    private static func index(of digest: [UInt8], in sessions: [Session]) -> Int? {
        var found: Int?
        for index in sessions.indices
        where ConstantTime.areEqual(sessions[index].digest, digest) {
            found = index
        }
        return found
    }

    private static func isGood(_ session: Session, _ now: UInt64) -> Bool {
        now < session.endsAt
            && now < session.usedAt + ConsoleLimits.sessionIdleMilliseconds
    }

    private static func digest(of cookie: String) -> [UInt8] {
        Digests.sha256(Array(cookie.utf8))
    }

    /// 256 random bits: a code of nothing under a key that was just drawn is as random as the key.
    private static func drawn() -> String {
        Base64.encodedForURL(
            Array(
                HMAC<SHA256>.authenticationCode(
                    for: [UInt8](), using: SymmetricKey(size: .bits256))))
    }
}
