import TestSupport
import Tidemark

/// What is found at a key: a value, or the mark of a deletion.
struct Found: Hashable, Sendable {
    let stamp: Stamp
    /// nil if it is deleted.
    let value: [UInt8]?
}

/// What was acknowledged, and so what must be everywhere once all has been exchanged.
///
/// A key that one replica alone writes holds what that replica wrote last: no clock is asked. A key
/// of all of them holds the write whose stamp is the greatest of all: what stands at a key after a
/// write is that write or one of a greater stamp, so the greatest that was told is that of the
/// winner, and no other may be found, neither an older one, which would be a write lost or a
/// deletion undone, nor a newer one, which nobody would have made.
struct TortureModel {
    private struct Content {
        let value: [UInt8]?
    }

    private struct Latest {
        let stamp: Stamp
        let isDeleted: Bool

        var description: String { "\(isDeleted ? "a deletion" : "a value") \(stamp)" }
    }

    let streams: [TortureStream]
    /// The last operation of each replica that was acknowledged.
    private(set) var acknowledged: [UInt64]
    /// How many writes the operations had that each replica made in its present store.
    private(set) var writeCounts: [UInt64]
    private var own: [TortureKey: Content] = [:]
    private var latest: [TortureKey: Latest] = [:]
    /// Keys at which there was once nothing after a deletion, so that its stamp is not known.
    private var gone: Set<TortureKey> = []

    init(_ seed: Seed, replicaCount: Int) {
        streams = (0..<replicaCount).map { TortureStream(seed: seed, replica: $0) }
        acknowledged = Array(repeating: 0, count: replicaCount)
        writeCounts = acknowledged
    }

    // MARK: - What happened

    /// Takes note of an operation and of what stood at its keys afterwards.
    ///
    /// - Throws: if an operation was left out, or a replica did not find its own write at a key of
    ///   its own.
    mutating func acknowledge(
        _ number: UInt64, of replica: Int, _ standings: [Standing]
    ) throws {
        try require(
            number == acknowledged[replica] + 1,
            "replica \(replica): operation \(number) follows \(acknowledged[replica])")
        acknowledged[replica] = number
        let writes = streams[replica].writes(of: number)
        writeCounts[replica] += UInt64(writes.count)
        for write in writes where write.key.owner != nil {
            own[write.key] = Content(value: write.value)
        }
        for standing in standings {
            if let content = own[standing.key] {
                try require(
                    standing.isDeleted == (content.value == nil),
                    "replica \(replica): after its operation \(number) it finds \(standing)")
            }
            note(standing)
        }
    }

    private mutating func note(_ standing: Standing) {
        guard let stamp = standing.stamp else {
            gone.insert(standing.key)
            return
        }
        if let known = latest[standing.key], known.stamp >= stamp { return }
        latest[standing.key] = Latest(stamp: stamp, isDeleted: standing.isDeleted)
    }

    /// The replica begins anew with an empty store, after all it had is elsewhere.
    mutating func beginAnew(_ replica: Int) {
        writeCounts[replica] = 0
    }

    // MARK: - What must be

    /// What is wrong with what a store holds once everything was exchanged.
    func differences(in found: [TortureKey: Found]) -> [String] {
        let keys = Set(found.keys).union(own.keys).union(latest.keys)
        return keys.sorted { $0.description < $1.description }.compactMap { key in
            difference(at: key, found[key]).map { "\(key): \($0)" }
        }
    }

    private func difference(at key: TortureKey, _ found: Found?) -> String? {
        let value = found?.value
        if key.owner != nil, let content = own[key], value != content.value {
            let wanted = Bytes.summary(content.value)
            return "\(Bytes.summary(value)) in place of \(wanted), its only writer's last write"
        }
        if let value, !isWritten(value, at: key) {
            return "\(Bytes.summary(value)), which nobody wrote there"
        }
        return differenceInOrder(at: key, found)
    }

    private func isWritten(_ value: [UInt8], at key: TortureKey) -> Bool {
        guard let (replica, number) = TortureStream.origin(of: value),
            streams.indices.contains(replica), number > 0, number <= acknowledged[replica]
        else { return false }
        let write = streams[replica].writes(of: number).last { $0.key == key }
        return write?.value == value
    }

    private func differenceInOrder(at key: TortureKey, _ found: Found?) -> String? {
        guard let last = latest[key] else {
            let isKnown = found == nil || (gone.contains(key) && found?.value == nil)
            return isKnown ? nil : "something of which nobody told"
        }
        guard let found else {
            let mayBeGone = last.isDeleted || gone.contains(key)
            return mayBeGone ? nil : "lost: nothing in place of \(last.description)"
        }
        if found.stamp < last.stamp {
            let isBack = last.isDeleted && found.value != nil
            return "\(isBack ? "is back" : "is older"): \(found.stamp) in place of "
                + last.description
        }
        if found.stamp > last.stamp {
            // The deletion of which no stamp is known.
            let isKnown = gone.contains(key) && found.value == nil
            return isKnown ? nil : "newer than what anybody told: \(found.stamp)"
        }
        guard (found.value == nil) == last.isDeleted else {
            return "\(Bytes.summary(found.value)) under the stamp of \(last.description)"
        }
        return nil
    }
}
