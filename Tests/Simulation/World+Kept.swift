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
        guard let record = recordThatHasSeenAll(key, record, required, forgotten) else { return }
        let isCertain = ofKey.count == model.tried[key]?.count && ofKey.count == required.count
        guard isCertain, let last = ofKey.last, isChain(ofKey) else { return }
        let value = WriteModel.numbers(in: record.value ?? [])
        if value != (isGone(last) ? [] : [last.number]) {
            fail(
                .lostWrite, "\(key): \(Self.text(record)) in place of \(last.number), the last")
        }
    }

    /// What stands, if it has seen every write that must not be lost and was not forgotten. Nothing
    /// may stand where something was deleted.
    ///
    /// - Returns: nil if nothing stands, or that is a finding.
    func recordThatHasSeenAll(
        _ key: ModelKey, _ record: Record?, _ required: [ModelWrite],
        _ forgotten: ForgottenDeletions
    ) -> Record? {
        guard let record else {
            if let lost = required.first(where: { !$0.isDeletion }),
                !model.deletedKeys.contains(key)
            {
                fail(.lostWrite, "\(key): nothing in place of write \(lost.number)")
            }
            return nil
        }
        let unseen = required.first {
            !record.version.vector.contains($0.version.dot)
                && !forgotten.vector.contains($0.version.dot)
        }
        guard let unseen else { return record }
        fail(
            .lostWrite,
            "\(key): \(Self.text(record)) has not seen write \(unseen.number) "
                + "\(unseen.version.dot)")
        return nil
    }

    /// Whether each of these has seen all before it.
    private func isChain(_ writes: [ModelWrite]) -> Bool {
        zip(writes, writes.dropFirst()).allSatisfy { before, after in
            after.version.vector.contains(before.version.dot)
        }
    }
}
