import Tidemark
import TidemarkSync

extension World {
    /// What a part must hold in the end, beside a replica that holds everything: of what belongs to
    /// it the same, and nothing else that is alive. Where what leaves is kept, an older version may
    /// stay of what is elsewhere outside of the part now, or was deleted under a key of which the
    /// part is told nothing.
    func checkPart(
        _ replica: SimulatedReplica, _ dataset: Int, of scope: SyncScope,
        beside whole: SimulatedReplica
    ) throws(StoreError) {
        // nil on its way to being whole again.
        let part = SimulatedScope.all.first { $0.scope == scope }
        for number in 0..<settings.keyCount {
            let key = ModelKey(dataset: dataset, number: number)
            let (there, here) = (try whole.record(key), try replica.record(key))
            let place = "\(key) in the part of \(replica.index)"
            if let there, let value = there.value, part.map({ $0.keeps(number, value) }) ?? true {
                let isSame =
                    here?.value == value && here?.version.dot == there.version.dot
                    && here?.version.time == there.version.time
                guard isSame else {
                    return fail(
                        .divergence,
                        "\(place): \(Self.text(here)) in place of \(Self.text(there))")
                }
                continue
            }
            guard let here, let value = here.value else { continue }
            guard Set(WriteModel.numbers(in: value)).isSubset(of: model.tried[key] ?? []) else {
                return fail(.inventedValue, "\(place): \(Self.text(here))")
            }
            guard !mayStay(here, number, part, beside: there) else { continue }
            fail(
                there?.value == nil ? .resurrection : .divergence,
                "\(place): \(Self.text(here)) stays, and elsewhere is \(Self.text(there))")
        }
    }

    private func mayStay(
        _ here: Record, _ number: Int, _ part: SimulatedScope?, beside there: Record?
    ) -> Bool {
        guard settings.keepsOutside, let part else { return false }
        guard let there else {
            // Forgotten: it was asked about what it has of the part, and about nothing else.
            return here.value.map { !part.keeps(number, $0) } ?? true
        }
        guard there.value != nil else { return part.decides(number) == false }
        if there.version.vector.contains(here.version.dot) { return true }
        // What was in doubt was written anew, as if it had not seen what has its former dot; and
        // what was put back may lack it. That it is no newer, or need not be anywhere, can be told
        // all the same.
        guard !isOrderly else { return false }
        if settings.policy.isUnion {
            let left = WriteModel.numbers(in: here.value ?? [])
            let lacking = Set(left).subtracting(WriteModel.numbers(in: there.value ?? []))
            return !model.writes.contains { $0.mustSurvive && lacking.contains($0.number) }
        }
        return model.hasFarClock || here.version.time <= there.version.time
    }
}
