import Tidemark
import TidemarkSync

// Handlers that decide, stop and throw, and whether the journal knows what they decided.

/// What a handler decided, and where nothing that was not decided could be taken for it.
struct MadeDecision {
    let key: ModelKey
    let value: [UInt8]
    let local: Dot
    let remote: Dot
    /// Under which the outcome would be written, and how far its writer had counted.
    let id: ReplicaID
    let counter: UInt64
}

/// What a handler throws that does not feel like deciding.
struct HandlerFailure: Error {}

extension SimulationSettings {
    /// Whether exchanges keep a journal of what they settle. Another run of each seed comes of it,
    /// since it draws numbers and takes up room in the logs.
    var keepsJournal: Bool { traits.contains(.pending) && !traits.contains(.merging) }
}

extension World {
    /// How conflicts are settled.
    ///
    /// - Parameter at: whose exchange it is; nil if no journal hears of it.
    func mergePolicy(at: Int?) -> MergePolicy {
        switch settings.policy {
        case .lastWriterWins: .lastWriterWins
        case .keepLocal: .keepLocal
        case .keepRemote: .keepRemote
        case .autoMerge: .autoMerge(AutoMerge(sets: [JSONPath(["n"])]))
        case .mergeable: .mergeable
        // What one policy has left the next one settles.
        case .leaving where !isHealing: .leavePending
        case .union, .stopping, .leaving:
            .custom { [self] conflict in try decide(conflict, at: at) }
        }
    }

    /// Unites the numbers of both. By the numbers alone it stops or throws before that, as long as
    /// there is trouble.
    private func decide(
        _ conflict: Conflict, at: Int?
    ) throws(HandlerFailure) -> Resolution {
        let ours = WriteModel.numbers(in: conflict.local.value ?? [])
        let theirs = WriteModel.numbers(in: conflict.remote.value ?? [])
        let all = Set(ours).union(theirs).sorted()
        if settings.policy == .stopping, !isHealing {
            switch all.reduce(0, +) % 4 {
            case 0: return .stop
            case 1: throw HandlerFailure()
            default: break
            }
        }
        let value = WriteModel.value(of: all, padding: 0, settings.form)
        if let at, settings.keepsJournal { note(conflict, value, at) }
        return .value(value)
    }

    private func note(_ conflict: Conflict, _ value: [UInt8], _ at: Int) {
        let replica = replicas[at]
        guard replica.isUp, let store = replica.store,
            let number = SimulatedReplica.number(of: conflict.key),
            let dataset = Int(conflict.dataset.dropFirst())
        else { return }
        attempt("counting at \(at)") { () throws(StoreError) in
            let id = store.replicaID
            decisions[at, default: []].append(
                MadeDecision(
                    key: ModelKey(dataset: dataset, number: number), value: value,
                    local: conflict.local.version.dot, remote: conflict.remote.version.dot,
                    id: id, counter: try replica.knowledge(dataset)?.vector[id] ?? 0))
        }
    }

    /// Whatever a crash left behind: where the outcome of a conflict is, the journal says so. A
    /// write by hand has a number of its own, so it is never taken for an outcome.
    func checkJournal(_ at: Int) {
        let replica = replicas[at]
        // What comes again after a store went back is written anew without being decided.
        guard isOrderly, let made = decisions[at], !made.isEmpty, replica.isUp,
            let store = replica.store
        else { return }
        attempt("reading the journal of \(at)") { () throws(StoreError) in
            var rest: [MadeDecision] = []
            for one in made {
                guard store.replicaID == one.id, let record = try replica.record(one.key),
                    record.version.vector.contains(one.local),
                    record.version.vector.contains(one.remote)
                else {
                    rest.append(one)
                    continue
                }
                let dot = record.version.dot
                guard dot.replica == one.id, dot.counter > one.counter,
                    record.value == one.value,
                    let dataset = try store.datasetForSync(
                        SimulatedReplica.name(one.key.dataset), creating: false)
                else { continue }
                let name = SimulatedReplica.key(one.key.number)
                let entries = try dataset.settledConflicts(of: name)
                guard entries.contains(where: { $0.write == dot }) else {
                    return fail(
                        .unjournalled, "\(one.key) at \(at): \(dot), of which no entry knows")
                }
            }
            decisions[at] = rest
        }
    }
}
