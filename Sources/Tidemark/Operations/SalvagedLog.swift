/// What is whole of a damaged log.
///
/// The blocks up to the first hole are read as at every opening. A hole that was durable once is
/// damage: reading goes on at the next whole block, where definitions may be missing (see
/// ``SalvagedLogTables``). A hole that never was durable is where the log ends.
@safe
final class SalvagedLog {
    /// An item that is about a dataset or the store, and no entry.
    enum Event {
        case dataset(id: DatasetID, isVisible: Bool, name: String, DatasetLifecycle)
        case checkpoint(name: String, peer: ReplicaID, PeerCheckpoint)
        case seen(name: String, VersionVector)
        case renamed(ReplicaID)
        case adopted(name: String, AdoptedState)
        case disowned(name: String, ReplicaID, isSettled: Bool)
        case forgotten(name: String, ForgottenDeletions)
        case retired(name: String, ReplicaID)
    }

    let file: SalvageFile
    let header: FileHeader?
    private(set) var events: [Event] = []
    /// In the order of their positions.
    private(set) var entries: [Entry] = []
    private(set) var losses: [SalvageLoss] = []
    private(set) var blockCount = 0
    /// Whether the log ends before it says so, in a place that never was durable: then no later
    /// log counts.
    private(set) var isCut = false
    private(set) var isEmpty = true
    private var tables = SalvagedLogTables()
    private var epochLast: UInt16 = 0

    /// - Parameters:
    ///   - durable: up to where the log is known to be durable from elsewhere.
    ///   - isEndKnown: whether that is all there is to know; false without a manifest.
    ///   - readsOn: whether what lies behind a hole is wanted though it may never have been
    ///     durable.
    init(
        _ file: SalvageFile, header: FileHeader?, durable: UInt64, isEndKnown: Bool,
        readsOn: Bool = false
    ) {
        self.file = file
        self.header = header
        let found = Self.blocks(of: file)
        isEmpty = found.isEmpty
        read(found, durable: durable, isEndKnown: isEndKnown, readsOn: readsOn)
        entries.sort { $0.position.compare($1.position) < 0 }
        if header == nil, !entries.isEmpty {
            losses.append(
                SalvageLoss(
                    kind: .versions, file: file.name, offset: 0,
                    byteCount: UInt64(FileHeader.byteCount), datasets: nil,
                    what: "the header of the log is damaged, and with it the times of its records"))
        }
    }

    /// The greatest mark in any whole block.
    static func markMax(of file: SalvageFile) -> UInt32 {
        blocks(of: file).reduce(0) { max($0, $1.header.mark) }
    }

    private static func blocks(of file: SalvageFile) -> [SalvageFile.FoundBlock] {
        var blocks: [SalvageFile.FoundBlock] = []
        var offset = FileHeader.byteCount
        while let found = file.nextBlock(from: offset) {
            let isOfLog =
                found.header.kind == BlockHeader.Kind.operations.rawValue
                || found.header.kind == BlockHeader.Kind.endOfLog.rawValue
            if isOfLog { blocks.append(found) }
            offset = isOfLog ? found.end : found.offset + LogSegment.alignment
        }
        return blocks
    }

    private func read(
        _ found: [SalvageFile.FoundBlock], durable known: UInt64, isEndKnown: Bool,
        readsOn: Bool
    ) {
        let durable = found.reduce(known) { max($0, UInt64($1.header.mark)) }
        var offset = FileHeader.byteCount
        for block in found {
            // Older than what stands before it: a crash cut it off once.
            guard block.header.epoch >= epochLast else { continue }
            if block.offset > offset {
                guard readsOn || durable > UInt64(offset) else { break }
                noteHole(offset..<block.offset)
            }
            epochLast = block.header.epoch
            offset = block.end
            blockCount += 1
            if block.header.kind == BlockHeader.Kind.endOfLog.rawValue { return }
            read(block)
        }
        guard durable > UInt64(offset) else {
            isCut = true
            if !isEndKnown { noteRemains(from: offset) }
            return
        }
        // Where the log ended nobody knows if all that is known is that it had an end.
        let end = durable == .max ? max(offset, file.byteCount) : Int(clamping: durable)
        noteHole(offset..<end)
    }

    /// Without a manifest nobody can tell a commit that was never complete from one that is
    /// damaged, if it stands at the end.
    private func noteRemains(from offset: Int) {
        guard let rest = file.view(offset, file.byteCount - offset) else { return }
        guard let last = unsafe rest.buffer.lastIndex(where: { $0 != 0 }) else { return }
        losses.append(
            SalvageLoss(
                kind: .block, file: file.name, offset: UInt64(offset),
                byteCount: UInt64(last + 1), datasets: nil,
                what: "what stands at the end of the log is no whole block: a commit that was "
                    + "never complete, or a damaged one"))
    }

    private func noteHole(_ range: Range<Int>) {
        tables.noteHole()
        losses.append(
            SalvageLoss(
                kind: .block, file: file.name, offset: UInt64(range.lowerBound),
                byteCount: UInt64(range.count), datasets: nil,
                what: "a part of the log is damaged"))
    }

    private func read(_ block: SalvageFile.FoundBlock) {
        guard
            let payload = file.view(
                block.offset + BlockHeader.byteCount, Int(block.header.storedCount))
        else { return }
        let timeBase = unsafe file.bytes.base + FileHeader.madeAtOffset
        var reader = unsafe LogItemReader(payload, timeBase: timeBase)
        do {
            while let item = try reader.next(originCount: Int(UInt32.max)) {
                read(item)
            }
        } catch {
            losses.append(
                SalvageLoss(
                    kind: .block, file: file.name, offset: UInt64(block.offset),
                    byteCount: UInt64(block.header.storedCount), datasets: nil,
                    what: "a block of the log is whole and says what it cannot: \(error.what)"))
        }
    }

    private func read(_ item: LogItem) {
        switch item {
        case .replica, .vector, .author, .origin:
            tables.define(item)
        case .dated:
            // After a repair no date moves the clock further than is believed.
            break
        case .entry(let entry, _):
            tables.use(entry.stamp.origin)
            entries.append(entry)
        case .dataset(let id, let isVisible, let name, let lifecycle):
            events.append(.dataset(id: id, isVisible: isVisible, name: name, lifecycle))
        case .checkpoint(let name, let peer, let checkpoint):
            events.append(.checkpoint(name: name, peer: peer, checkpoint))
        case .seen(let name, let vector):
            events.append(.seen(name: name, vector))
        case .renamed(let id), .copied(let id):
            events.append(.renamed(id))
        case .adopted(let name, let adopted):
            events.append(.adopted(name: name, adopted))
        case .disowned(let name, let id, let isSettled):
            events.append(.disowned(name: name, id, isSettled: isSettled))
        case .forgotten(let name, let deletions):
            events.append(.forgotten(name: name, deletions))
        case .retired(let name, let peer):
            events.append(.retired(name: name, peer))
        }
    }

    func version(of stamp: Stamp) -> Version? {
        guard header != nil else { return nil }
        return tables.origins[stamp.origin]?.version(of: stamp)
    }
}

/// Walks over the entries of a log in the order of their positions.
final class SalvagedLogCursor: SalvageCursor {
    private let log: SalvagedLog
    private var index = 0

    init(_ log: SalvagedLog) {
        self.log = log
    }

    var entry: Entry? { index < log.entries.count ? log.entries[index] : nil }

    func advance() { index += 1 }

    func version(of stamp: Stamp) -> Version? { log.version(of: stamp) }
}

/// The definitions of a log with holes in it.
///
/// A definition takes the next number, so behind a hole nobody can count any more. What was
/// defined before stays good. A later origin is good, too, if everything it names is either known
/// or was defined right in front of it, as the writer does for what it needs first: then as many
/// numbers are unknown as there are new replicas, in the same order. And the entry that follows
/// an origin names it. What cannot be told in this way is left unknown rather than guessed.
struct SalvagedLogTables {
    private(set) var origins: [UInt32: SalvagedOrigin] = [:]
    private var replicas: [UInt32: ReplicaID] = [:]
    private var vectors: [UInt32: VersionVector] = [:]
    private var authors: [UInt32: String] = [:]
    private var hasHole = false

    // Behind a hole: what was defined since the last origin, and that, until an entry names it.
    private var newReplicas: [ReplicaID] = []
    private var newVectors: [[(replica: UInt32, counter: UInt64)]] = []
    private var newAuthors: [String] = []
    private var nameless: SalvagedOrigin?

    mutating func noteHole() {
        hasHole = true
        forgetNew()
        nameless = nil
    }

    private mutating func forgetNew() {
        newReplicas = []
        newVectors = []
        newAuthors = []
    }

    mutating func define(_ item: LogItem) {
        nameless = nil
        switch item {
        case .replica(let id):
            if hasHole { newReplicas.append(id) } else { replicas[UInt32(replicas.count)] = id }
        case .author(let author):
            if hasHole {
                newAuthors.append(author)
            } else {
                authors[UInt32(authors.count)] = author
            }
        case .vector(let entries):
            if hasHole {
                newVectors.append(entries)
            } else {
                vectors[UInt32(vectors.count)] = vector(entries) ?? VersionVector()
            }
        case .origin(let origin):
            if hasHole { infer(origin) }
            let known = resolved(origin)
            if !hasHole, let known { origins[UInt32(origins.count)] = known }
            if hasHole { nameless = known }
            forgetNew()
        default: break
        }
    }

    /// An entry names an origin: if one was just defined, it is that.
    mutating func use(_ number: UInt32) {
        if let nameless, origins[number] == nil { origins[number] = nameless }
        nameless = nil
        forgetNew()
    }

    private func resolved(_ origin: Origin) -> SalvagedOrigin? {
        guard let replica = replicas[origin.replica], let vector = vectors[origin.vector],
            let author = authors[origin.author]
        else { return nil }
        return SalvagedOrigin(replica: replica, vector: vector, author: author)
    }

    private func vector(_ entries: [(replica: UInt32, counter: UInt64)]) -> VersionVector? {
        var vector = VersionVector()
        for entry in entries {
            guard let replica = replicas[entry.replica] else { return nil }
            vector.insert(Dot(replica: replica, counter: entry.counter))
        }
        return vector
    }

    /// Gives numbers to what was defined in front of an origin, if there is one way only.
    private mutating func infer(_ origin: Origin) {
        let entries = newVectors.count == 1 ? newVectors[0] : []
        var unknown: Set<UInt32> = []
        for number in entries.map(\.replica) + [origin.replica] where replicas[number] == nil {
            unknown.insert(number)
        }
        let numbers = unknown.sorted()
        guard newVectors.count <= 1, newAuthors.count <= 1, numbers.count == newReplicas.count,
            numbers.isEmpty || Int(numbers[numbers.count - 1] - numbers[0]) == numbers.count - 1
        else { return }
        for (number, replica) in zip(numbers, newReplicas) { replicas[number] = replica }
        if vectors[origin.vector] == nil, newVectors.count == 1 {
            vectors[origin.vector] = vector(entries)
        }
        if authors[origin.author] == nil, let author = newAuthors.first {
            authors[origin.author] = author
        }
    }
}
