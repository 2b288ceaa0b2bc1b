internal import Synchronization

/// Somebody who reads on from time to time, and holds the present view in between: once another one
/// takes its place, no longer.
protocol ViewHolder: AnyObject, Sendable {
    /// Waits for nobody.
    func letGo()
}

/// Those who hold the present view.
final class ViewHolders: Sendable {
    private struct Reference {
        weak var holder: (any ViewHolder)?
    }

    private let references = Mutex<[ObjectIdentifier: Reference]>([:])
    private let count = Atomic<Int>(0)
    /// From here on those who are gone are looked for.
    private static let countSwept = 64

    func add(_ holder: any ViewHolder) {
        references.withLock { references in
            if references.count >= Self.countSwept, references.count.nonzeroBitCount == 1 {
                references = references.filter { $0.value.holder != nil }
            }
            references[ObjectIdentifier(holder)] = Reference(holder: holder)
            count.store(references.count, ordering: .releasing)
        }
    }

    func remove(_ holder: any ViewHolder) {
        references.withLock { references in
            references[ObjectIdentifier(holder)] = nil
            count.store(references.count, ordering: .releasing)
        }
    }

    /// Of all.
    func letGo() {
        guard count.load(ordering: .acquiring) > 0 else { return }
        let all = references.withLock { references in
            defer {
                references.removeAll()
                count.store(0, ordering: .releasing)
            }
            return references.values.compactMap(\.holder)
        }
        for holder in all { holder.letGo() }
    }
}
