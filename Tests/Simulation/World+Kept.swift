import Tidemark

extension World {
    /// Where one side is kept by rule, a conflict may bring back what somebody has overwritten
    /// elsewhere meanwhile; dates decide nothing. But what stands has seen all that may not be lost
    /// or was forgotten, and where each write had seen all before it there was no conflict, so that
    /// the last one stands.
    func checkKept(
        _ key: ModelKey, _ record: Record?, _ required: [ModelWrite],
        _ forgotten: ForgottenDeletions
    ) {
        // What was in doubt is written anew, as if it had seen less.
        guard isOrderly, !model.hasFarClock else { return }
        let ofKey = model.writes.filter { $0.key == key }
        guard let record else {
            if let lost = required.first(where: { !isGone($0) }), !model.deletedKeys.contains(key) {
                fail(.lostWrite, "\(key): nothing in place of write \(lost.number)")
            }
            return
        }
        let unseen = required.first {
            !record.version.vector.contains($0.version.dot)
                && !forgotten.vector.contains($0.version.dot)
        }
        if let unseen {
            return fail(
                .lostWrite,
                "\(key): \(Self.text(record)) has not seen write \(unseen.number) "
                    + "\(unseen.version.dot)")
        }
        let isCertain = ofKey.count == model.tried[key]?.count && ofKey.count == required.count
        guard isCertain, let last = ofKey.last, isChain(ofKey) else { return }
        let value = WriteModel.numbers(in: record.value ?? [])
        if value != (isGone(last) ? [] : [last.number]) {
            fail(
                .lostWrite, "\(key): \(Self.text(record)) in place of \(last.number), the last")
        }
    }

    /// Whether each of these has seen all before it.
    private func isChain(_ writes: [ModelWrite]) -> Bool {
        zip(writes, writes.dropFirst()).allSatisfy { before, after in
            after.version.vector.contains(before.version.dot)
        }
    }
}
