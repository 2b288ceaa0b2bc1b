import TestSupport
import Tidemark
import TidemarkSync

/// Carries the messages of one exchange through the simulated network. Anything may happen to
/// them that the weather allows.
struct SimulatedTransport: SyncTransport {
    let link: SimulatedLink

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let link = link
        let answer = await withCheckedContinuation {
            (continuation: CheckedContinuation<[UInt8]?, Never>) in
            link.carry(request) { continuation.resume(returning: $0) }
        }
        guard let answer else {
            throw SyncError(.unreachable, "no answer came in time; repeat the exchange")
        }
        return answer
    }
}

/// The way from one replica to another and back, for one exchange.
final class SimulatedLink: @unchecked Sendable {
    // Unchecked: like all of a simulation it belongs to the one thread that runs it.
    private unowned let simulation: World
    let from: Int
    let to: Int
    private let incarnation: Int
    private let weather: Weather
    private var random: SeededGenerator
    private let pageRecordsMax: Int

    /// Milliseconds after which the asker gives up.
    private static let timeout: UInt64 = 1_000
    /// Bytes of a message beside those of its records: vectors, names, checkpoints.
    private static let overheadBytesMax = 64 << 10
    /// Bytes of a record with the longest value that is written here.
    private static let recordBytesMax = 62 << 10

    init(
        _ simulation: World, from: Int, to: Int, _ weather: Weather, pageRecordsMax: Int
    ) {
        self.simulation = simulation
        self.from = from
        self.to = to
        self.weather = weather
        self.pageRecordsMax = pageRecordsMax
        incarnation = simulation.replicas[from].incarnation
        random = SeededGenerator(Seed(weather.seed))
    }

    /// Whether the process that asks still runs.
    private var isAskerAlive: Bool {
        let asker = simulation.replicas[from]
        return asker.incarnation == incarnation && asker.remains == nil
    }

    /// - Parameter reply: called once, with nil if no answer comes in time.
    func carry(_ request: [UInt8], reply: @escaping ([UInt8]?) -> Void) {
        let call = PendingCall(reply)
        simulation.time.schedule(after: Self.timeout) { call.end(nil) }
        guard isAskerAlive, !simulation.isOver else { return call.end(nil) }
        checkSize(request)
        let copies = random.below(100) < weather.repeatPercent ? 2 : 1
        for _ in 0..<copies {
            guard let arriving = mishaps(request) else { continue }
            simulation.time.schedule(after: delay(to)) { [self] in
                deliver(arriving, to: call)
            }
        }
    }

    private func deliver(_ sent: [UInt8], to call: PendingCall) {
        var request = sent
        let target = simulation.replicas[to]
        guard !simulation.isCut(from, to), target.isUp, let store = target.store else { return }
        var limits = SyncResponder.Limits(pageRecordsMax: pageRecordsMax)
        let isLarge = simulation.settings.largeDataset != nil
        if isLarge {
            limits.segmentBytesMin = 0
            spoilBlocks(in: &request)
        }
        let responder = SyncResponder(
            store: store, limits: limits, validate: simulation.refusal, journal: .off)
        // What came before may have been held, and what is held is let in by any question.
        simulation.followHeld(to, isAnswering: true)
        var answer = responder.respond(to: request)
        simulation.followHeld(to, isAnswering: true)
        // What a part has just handed over may have something else in its place soon.
        if simulation.replicas[from].mayBePart { simulation.noteHandedOver(to) }
        if isLarge { spoilBlocks(in: &answer) }
        simulation.note("\(from) > \(to) \(Self.name(request)), \(Self.name(answer))")
        // What it did it did, but its answer died with it.
        guard target.remains == nil else { return }
        checkSize(answer)
        guard let arriving = mishaps(answer) else { return }
        simulation.time.schedule(after: delay(from)) { [self] in
            guard isAskerAlive, !simulation.isCut(from, to) else { return }
            call.end(arriving)
        }
    }

    /// Kind, size and checksum: enough to tell two messages apart.
    private static func name(_ message: [UInt8]) -> String {
        let checksum = message.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return "\(message.count) bytes \(String(checksum, radix: 16))"
    }

    private func delay(_ replica: Int) -> UInt64 {
        simulation.replicas[replica].slowness
            + UInt64(random.below(Int(weather.delayMax))) + 1
    }

    /// What is left of a message on its way; nil if nothing.
    private func mishaps(_ message: [UInt8]) -> [UInt8]? {
        if random.below(100) < weather.lossPercent { return nil }
        guard random.below(100) < weather.damagePercent, !message.isEmpty else { return message }
        var damaged = message
        damaged[random.below(message.count)] ^= UInt8(1 << random.below(8))
        if random.oneIn(4) { damaged.removeLast(random.below(message.count)) }
        return damaged
    }

    /// A bit turns over in the memory of whoever sends blocks of segments, before the message gets
    /// its checksum: only that of the block can tell.
    private func spoilBlocks(in message: inout [UInt8]) {
        let (head, sum) = (12, 8)
        guard message.count > 256, Self.kindsWithBlocks.contains(message[6]), message[7] == 0,
            weather.damagePercent > 0, random.oneIn(3)
        else { return }
        var body = Array(message.dropLast(sum))
        // The blocks stand behind all else.
        let half = (body.count - head) / 2
        body[head + half + random.below(half)] ^= UInt8(1 << random.below(8))
        let checksum = unsafe body.withUnsafeBytes { unsafe checksum64($0) }
        message = body
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            message.append(UInt8(truncatingIfNeeded: checksum >> shift))
        }
    }

    /// The kinds of messages with blocks.
    private static let kindsWithBlocks: [UInt8] = [0x0A, 0x87]

    private func checkSize(_ message: [UInt8]) {
        let most = Self.overheadBytesMax + pageRecordsMax * Self.recordBytesMax
        if message.count > most {
            simulation.fail(.unbounded, "a message of \(message.count) bytes, at most \(most)")
        }
        if let count = MessageLabel.pageRecordCount(in: message), count > pageRecordsMax {
            simulation.fail(.unbounded, "a page of \(count) records, at most \(pageRecordsMax)")
        }
    }
}

/// A request whose answer ends it, once.
private final class PendingCall {
    private var reply: (([UInt8]?) -> Void)?

    init(_ reply: @escaping ([UInt8]?) -> Void) {
        self.reply = reply
    }

    func end(_ answer: [UInt8]?) {
        let reply = reply
        self.reply = nil
        reply?(answer)
    }
}
