import Logging
import TidemarkSync

/// Has a pool's sync trigger look at updates before they are written: an endpoint of the app's
/// service, or a closure of the process that embeds the hub, in place of a Lambda function.
///
/// Only updates of identities go through it, as in Cognito Sync: what a developer writes is not
/// looked at.
struct PoolTrigger: SyncTrigger {
    let book: PoolBook
    /// Told to the trigger.
    let region: String
    let clock: any SyncEnvironment

    /// As in Cognito Sync.
    static let limit = Duration.seconds(5)

    func isNeeded(_ context: UpdateContext) -> Bool {
        guard case .identity = context.principal else { return false }
        return book.record(of: context.pool)?.syncTrigger != nil
            && book.behavior(of: context.pool).trigger != nil
    }

    func changed(
        _ records: [TriggerRecord], _ context: UpdateContext
    ) async throws(APIFailure) -> [TriggerRecord]? {
        guard isNeeded(context), let trigger = book.behavior(of: context.pool).trigger else {
            return nil
        }
        let output: [TriggerOutput]
        switch trigger {
        case .endpoint(let webhook):
            let input = TriggerDocument.input(records, context, region: region)
            let answer = try await Self.answer(of: webhook, to: input, "the sync trigger")
            output = try TriggerDocument.output(answer)
        case .closure(let handler):
            output = try await called(handler, records, context)
        }
        return try Self.merged(records, output)
    }

    private func called(
        _ handler: @escaping SyncTriggerHandler, _ records: [TriggerRecord],
        _ context: UpdateContext
    ) async throws(APIFailure) -> [TriggerOutput] {
        let event = SyncTriggerEvent(
            identityPoolID: context.pool.text, identityID: context.identity.text,
            datasetName: context.dataset.text,
            records: records.map { record in
                SyncTriggerRecord(
                    key: record.key, oldValue: record.oldValue, newValue: record.newValue,
                    isChanged: record.isChanged)
            })
        let returned: [SyncTriggerRecord]?
        do {
            returned = try await TimeLimit.run(Self.limit, clock) { try await handler(event) }
        } catch is TriggerThrottled {
            throw APIFailure(.triggerThrottled, "the sync trigger has too much to do")
        } catch {
            throw APIFailure(.invalidTriggerOutput, "the sync trigger failed")
        }
        guard let returned else {
            throw APIFailure(.invalidTriggerOutput, "the sync trigger timed out after 5 seconds")
        }
        return returned.map { TriggerOutput(key: $0.key, value: $0.newValue) }
    }

    /// What an endpoint says to a question.
    ///
    /// - Parameter name: of what was asked, for the failure.
    static func answer(
        of webhook: Webhook, to question: [UInt8], _ name: String
    ) async throws(APIFailure) -> [UInt8] {
        do throws(WebhookFailure) {
            return try await askedTwice(webhook, question)
        } catch {
            webhook.logger.warning(
                "an endpoint gave no answer that is of use",
                metadata: ["asked": "\(name)", "error": "\(error)"])
            switch error {
            case .refused(status: 429):
                throw APIFailure(
                    .triggerThrottled, "\(name) has too much to do", retryAfterSeconds: 1)
            case .timedOut:
                throw APIFailure(.invalidTriggerOutput, "\(name) timed out after 5 seconds")
            case .refused(let status):
                throw APIFailure(.invalidTriggerOutput, "\(name) answered with status \(status)")
            case .tooLarge:
                throw APIFailure(.invalidTriggerOutput, "the answer of \(name) is too large")
            case .unreachable:
                // Where it is, and why it cannot be reached, is for the hub's log alone.
                throw APIFailure(.invalidTriggerOutput, "\(name) cannot be reached")
            case .cancelled:
                throw APIFailure(
                    .serviceUnavailable, "the hub is shutting down; repeat the request later",
                    retryAfterSeconds: 1)
            }
        }
    }

    /// Asks again if the connection breaks: mostly it was one of before, which the endpoint closed
    /// just when it was used again. Both have the one time.
    private static func askedTwice(
        _ webhook: Webhook, _ question: [UInt8]
    ) async throws(WebhookFailure) -> [UInt8] {
        let started = webhook.clock.now()
        do throws(WebhookFailure) {
            return try await webhook.post(
                question, limit: limit, answerBytesMax: JSONLimits.bytesMax)
        } catch {
            guard case .unreachable = error else { throw error }
            let now = webhook.clock.now()
            let passed = Duration.milliseconds(Int64(clamping: now - min(now, started)))
            guard passed < limit else { throw error }
            return try await webhook.post(
                question, limit: limit - passed, answerBytesMax: JSONLimits.bytesMax)
        }
    }

    /// What is to be written: the caller's changes as the trigger wants them, then its own.
    ///
    /// What the trigger leaves out stays as the caller wants it: clients wait for an answer about
    /// each record that they have sent.
    static func merged(
        _ records: [TriggerRecord], _ output: [TriggerOutput]
    ) throws(APIFailure) -> [TriggerRecord] {
        // By their bytes: texts that look alike are two keys.
        var outputs: [[UInt8]: TriggerOutput] = [:]
        for record in output {
            try check(record)
            guard outputs.updateValue(record, forKey: Array(record.key.utf8)) == nil else {
                throw APIFailure(
                    .invalidTriggerOutput, "the sync trigger gave a record more than once")
            }
        }
        var merged: [TriggerRecord] = []
        for var record in records {
            if let output = outputs.removeValue(forKey: Array(record.key.utf8)),
                !areEqual(output.value, record.newValue)
            {
                record.newValue = output.value
                record.isChanged = true
            }
            if record.isChanged { merged.append(record) }
        }
        let added = outputs.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
        for output in added {
            // There is nothing to remove.
            guard let value = output.value else { continue }
            merged.append(
                TriggerRecord(key: output.key, oldValue: nil, newValue: value, isChanged: true))
        }
        return merged
    }

    private static func areEqual(_ left: String?, _ right: String?) -> Bool {
        left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
    }

    private static func check(_ record: TriggerOutput) throws(APIFailure) {
        let (key, value) = (record.key.unicodeScalars.count, record.value?.unicodeScalars.count)
        guard (1...APINames.recordKeyCharactersMax).contains(key),
            value ?? 0 <= APINames.recordValueCharactersMax
        else {
            throw APIFailure(
                .invalidTriggerOutput,
                "the sync trigger gave a key or value that is longer than any record's")
        }
    }
}
