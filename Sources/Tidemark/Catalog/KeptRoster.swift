/// What a closing keeps of the roster and of settled exchanges, so that the next opening, and its
/// peers, need not look at every dataset once more.
///
/// The file ROSTER speaks of one state of the store, by the length and a digest of manifest and
/// active log, and counts for nothing in any other: not after a crash, nor if anything was written
/// by whoever knows nothing of it. It is no loss if it is missing, or damaged, or not durable. Of
/// two stores that were copied as they lay there it is true of both, since both hold what it speaks
/// of, and each goes on under an incarnation of its own.
struct KeptRoster {
    static let fileName = "ROSTER"
    static let temporaryName = "ROSTER.new"

    /// A state of the store, as manifest and active log say it.
    struct State: Hashable {
        let log: UInt64
        let logBytes: UInt64
        /// XXH3-128 of the manifest's content, then of the log.
        let high: UInt64
        let low: UInt64
    }

    let state: State
    let epoch: UInt64
    let positionMin: UInt64
    let stretches: [ChangeRoster.Stretch]
    let lines: [ChangeRoster.Line]
    /// The latest first.
    let exchanges: [SettledExchange]

    /// - Parameter namesMax: of the datasets that changed last so many are kept, and of an exchange
    ///   that left more than that unsettled nothing.
    init(
        _ roster: ChangeRoster, _ exchanges: [SettledExchange], of state: State,
        namesMax: Int = Limits.rosterNamesKeptMax
    ) {
        self.state = state
        epoch = roster.epoch
        // An opening in which nothing changed has handed out no mark.
        stretches = roster.stretches.filter { $0.first < roster.epoch }
        let all = roster.lastLines
        let dropped = all.dropLast(namesMax).last?.epoch ?? 0
        positionMin = max(roster.positionMin, dropped)
        lines = all.suffix(namesMax)
        self.exchanges = exchanges.filter { $0.unsettled.count <= namesMax }
    }

    func roster(incarnation: UInt64) -> ChangeRoster {
        ChangeRoster(
            epoch: epoch, positionMin: positionMin, stretches: stretches, lines: lines,
            incarnation: incarnation)
    }

    // MARK: - As bytes

    /// The fields in order as varints, digests and incarnations as eight bytes, lists with their
    /// count before them.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: state.log)
        writer.append(varint: state.logBytes)
        writer.append(fixed64: state.high)
        writer.append(fixed64: state.low)
        writer.append(varint: epoch)
        writer.append(varint: positionMin)
        writer.append(varint: stretches.count)
        for stretch in stretches {
            writer.append(fixed64: stretch.incarnation)
            writer.append(varint: stretch.first)
        }
        writer.append(varint: lines.count)
        for line in lines {
            writer.append(counted: line.name)
            writer.append(varint: line.epoch)
        }
        writer.append(varint: exchanges.count)
        for exchange in exchanges {
            writer.append(exchange.peer)
            writer.append(exchange.own)
            for mark in [exchange.peerMark, exchange.ownMark] {
                writer.append(fixed64: mark.incarnation)
                writer.append(varint: mark.position)
            }
            writer.append(varint: exchange.unsettled.count)
            for name in exchange.unsettled.sorted() { writer.append(counted: name) }
        }
        return writer.bytes
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        state = State(
            log: try reader.varintCount(), logBytes: try reader.varint(),
            high: try reader.fixed64(), low: try reader.fixed64())
        epoch = try reader.varintCount()
        positionMin = try reader.varintCount()
        guard positionMin < epoch else { throw Malformed("the roster knows nothing") }
        var stretches: [ChangeRoster.Stretch] = []
        for _ in 0..<(try reader.count(eachAtLeast: 9)) {
            let stretch = ChangeRoster.Stretch(
                incarnation: try reader.fixed64(), first: try reader.varintCount())
            guard stretch.first > stretches.last?.first ?? 0, stretch.first < epoch else {
                throw Malformed("the stretches of the roster are out of order")
            }
            stretches.append(stretch)
        }
        guard !stretches.isEmpty else { throw Malformed("the roster has no stretch") }
        self.stretches = stretches
        var lines: [ChangeRoster.Line] = []
        var names: Set<String> = []
        for _ in 0..<(try reader.count(eachAtLeast: 3)) {
            let line = ChangeRoster.Line(
                name: try reader.datasetName(), epoch: try reader.varintCount())
            guard line.epoch >= lines.last?.epoch ?? 0, line.epoch < epoch,
                names.insert(line.name).inserted
            else { throw Malformed("the lines of the roster are out of order") }
            lines.append(line)
        }
        self.lines = lines
        var exchanges: [SettledExchange] = []
        for _ in 0..<(try reader.count(eachAtLeast: 51)) {
            let (peer, own) = (try reader.replicaID(), try reader.replicaID())
            let (peerMark, ownMark) = (try reader.storeMark(), try reader.storeMark())
            var unsettled: Set<String> = []
            for _ in 0..<(try reader.count(eachAtLeast: 2)) {
                unsettled.insert(try reader.datasetName())
            }
            exchanges.append(
                SettledExchange(
                    peer: peer, own: own, peerMark: peerMark, ownMark: ownMark,
                    unsettled: unsettled))
        }
        guard exchanges.count <= SettledExchange.countMax,
            Set(exchanges.map(\.peer)).count == exchanges.count
        else { throw Malformed("the roster has two exchanges with one peer, or too many") }
        self.exchanges = exchanges
        guard reader.isAtEnd else { throw Malformed("the roster is followed by more bytes") }
    }
}

extension ByteReader {
    fileprivate mutating func storeMark() throws(Malformed) -> StoreMark {
        StoreMark(incarnation: try fixed64(), position: try varintCount())
    }
}
