import Tidemark

extension SyncMessage {
    /// Takes a message apart whose frame was checked.
    init(
        _ frame: MessageFrame, _ bounds: MessageBounds = MessageBounds()
    ) throws(SyncError) {
        guard let kind = MessageKind(rawValue: frame.kind) else {
            throw .badMessage("a message is of the unknown kind \(frame.kind)")
        }
        var reader = VersionReader(frame.body, bounds)
        switch kind {
        case .hello: self = .hello(try HelloRequest(from: &reader))
        case .pull: self = .pull(try PullRequest(from: &reader))
        case .push: self = .push(try PushRequest(from: &reader))
        case .reconcile: self = .reconcile(try ReconcileRequest(from: &reader))
        case .fetch: self = .fetch(try FetchRequest(from: &reader))
        case .segments: self = .segments(SegmentsRequest(address: try Address(from: &reader)))
        case .segmentRange: self = .segmentRange(try SegmentRangeRequest(from: &reader))
        case .watch: self = .watch(try WatchRequest(from: &reader))
        case .segmentsPush: self = .segmentsPush(try SegmentsPushRequest(from: &reader))
        case .segmentRangePush:
            self = .segmentRangePush(try SegmentRangePushRequest(from: &reader))
        case .scopedPull: self = .scopedPull(try ScopedPullRequest(from: &reader))
        case .lookup: self = .lookup(try LookupRequest(from: &reader))
        case .partPush: self = .partPush(try PushRequest(from: &reader))
        case .records: self = .records(try RecordsRequest(from: &reader))
        case .inquiry: self = .inquiry(try InquiryRequest(from: &reader))
        case .burial: self = .burial(try BurialRequest(from: &reader))
        case .sweep: self = .sweep(try SweepRequest(from: &reader))
        case .helloAnswer: self = .helloAnswer(try HelloAnswer(from: &reader))
        case .pullAnswer: self = .pullAnswer(PullAnswer(page: try reader.takePage()))
        case .pushAnswer: self = .pushAnswer(try PushAnswer(from: &reader))
        case .reconcileAnswer: self = .reconcileAnswer(try ReconcileAnswer(from: &reader))
        case .fetchAnswer: self = .fetchAnswer(try FetchAnswer(from: &reader))
        case .segmentsAnswer: self = .segmentsAnswer(try SegmentsAnswer(from: &reader))
        case .segmentRangeAnswer:
            self = .segmentRangeAnswer(try SegmentRangeAnswer(from: &reader))
        case .watchAnswer: self = .watchAnswer(try WatchAnswer(from: &reader))
        case .segmentsPushAnswer:
            self = .segmentsPushAnswer(try SegmentsPushAnswer(from: &reader))
        case .segmentRangePushAnswer:
            self = .segmentRangePushAnswer(try SegmentRangePushAnswer(from: &reader))
        case .scopedPullAnswer: self = .scopedPullAnswer(try ScopedPullAnswer(from: &reader))
        case .lookupAnswer: self = .lookupAnswer(try LookupAnswer(from: &reader))
        case .recordsAnswer: self = .recordsAnswer(try RecordsAnswer(from: &reader))
        case .inquiryAnswer: self = .inquiryAnswer(try InquiryAnswer(from: &reader))
        case .burialAnswer:
            let buried = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
            self = .burialAnswer(BurialAnswer(buried: buried))
        case .sweepAnswer: self = .sweepAnswer(try SweepAnswer(from: &reader))
        case .failure: self = .failure(try Failure(from: &reader))
        }
        try reader.finish()
    }
}

extension VersionReader {
    mutating func takeSyncCount() throws(SyncError) -> SyncCount {
        SyncCount(rawValue: try plain { reader throws(SyncError) in try reader.takeVarint() })
    }

    mutating func takeFlag() throws(SyncError) -> Bool {
        try plain { reader throws(SyncError) in try reader.takeFlag() }
    }

    /// Whether it is a name that the store accepts is for the store to say.
    mutating func takeName() throws(SyncError) -> String {
        try plain { reader throws(SyncError) in
            try reader.takeText("dataset name", max: Limits.datasetNameBytesMax)
        }
    }

    mutating func takeCount(
        of what: StaticString, bytesEach: Int = 1, max: Int
    ) throws(SyncError) -> Int {
        try plain { reader throws(SyncError) in
            try reader.takeCount(of: what, bytesEach: bytesEach, max: max)
        }
    }

    /// A number that stands for itself and not for bytes that follow.
    mutating func takeNumber(max: Int) throws(SyncError) -> Int {
        try plain { reader throws(SyncError) in
            Int(min(try reader.takeVarint(), UInt64(max)))
        }
    }
}

extension Address {
    init(from reader: inout VersionReader) throws(SyncError) {
        from = try reader.takeReplica()
        to = try reader.takeReplica()
        dataset = try reader.takeName()
        moved = try reader.takeNames()
    }
}

extension VersionReader {
    /// Names of datasets in their order.
    fileprivate mutating func takeNames() throws(SyncError) -> [String] {
        let count = try takeCount(
            of: "dataset names", bytesEach: 2, max: SyncLimits.mergedDatasetsMax)
        var names: [String] = []
        for _ in 0..<count {
            let name = try takeName()
            guard names.last.map({ $0 < name }) ?? true else {
                throw .badMessage("a list of datasets is not in order")
            }
            names.append(name)
        }
        return names
    }
}

extension HelloRequest {
    init(from reader: inout VersionReader) throws(SyncError) {
        versions = try reader.plain { reader throws(SyncError) in
            let lowest = try reader.takeFixed(UInt16.self)
            let highest = try reader.takeFixed(UInt16.self)
            guard lowest <= highest else { throw reader.failure("a range is upside down") }
            return lowest...highest
        }
        from = try reader.takeReplica()
        if try reader.takeFlag() {
            var names: [String] = []
            for _
                in 0..<(try reader.takeCount(
                    of: "dataset names", max: SyncLimits.datasetsPerAnswerMax))
            {
                names.append(try reader.takeName())
            }
            self.names = names
        }
        if try reader.takeFlag() {
            after = try reader.takeName()
        }
        incarnation = try reader.plain { reader throws(SyncError) in
            try reader.takeFixed(UInt64.self)
        }
        let count = try reader.takeCount(of: "marks", bytesEach: 9, max: SyncLimits.marksMax)
        for _ in 0..<count {
            marks.append(try StoreMark(from: &reader))
        }
    }
}

extension HelloAnswer {
    init(from reader: inout VersionReader) throws(SyncError) {
        version = try reader.plain { reader throws(SyncError) in
            try reader.takeFixed(UInt16.self)
        }
        replica = try reader.takeReplica()
        let count = try reader.takeCount(
            of: "datasets", bytesEach: 4, max: SyncLimits.datasetsPerAnswerMax)
        datasets = []
        for _ in 0..<count {
            datasets.append(try DatasetGreeting(from: &reader))
        }
        let form = try reader.takeCode()
        guard form < 16 else { throw .badMessage("\(form) is no form of a greeting") }
        isComplete = form & 1 != 0
        mark = try reader.takeFlag() ? try StoreMark(from: &reader) : nil
        changedSince = try reader.takeFlag() ? try StoreMark(from: &reader) : nil
        if form & 2 != 0 {
            try takeLists(from: &reader) { greeting, reader throws(SyncError) in
                greeting.merged = try MergedDataset.takeAll(from: &reader)
            }
        }
        if form & 4 != 0 {
            try takeLists(from: &reader) { greeting, reader throws(SyncError) in
                greeting.moved = try reader.takeNames()
                guard !greeting.moved.isEmpty else {
                    throw .badMessage("a list of datasets is empty")
                }
            }
        }
        if form & 8 != 0 {
            try takeLists(from: &reader, bytesEach: 1) { greeting, _ in greeting.isPart = true }
        }
    }

    /// What is told of a few of the datasets only, at least of one.
    private mutating func takeLists(
        from reader: inout VersionReader, bytesEach: Int = 4,
        take: (inout DatasetGreeting, inout VersionReader) throws(SyncError) -> Void
    ) throws(SyncError) {
        let count = try reader.takeCount(
            of: "datasets", bytesEach: bytesEach, max: SyncLimits.datasetsPerAnswerMax)
        var next = 0
        for _ in 0..<count {
            let index = try reader.takeNumber(max: .max)
            guard datasets.indices.contains(index), index >= next else {
                throw .badMessage("a list is about none of the other datasets")
            }
            next = index + 1
            try take(&datasets[index], &reader)
        }
        guard count > 0 else { throw .badMessage("a list of datasets is empty") }
    }
}

extension MergedDataset {
    /// In the order of their names, at least one.
    fileprivate static func takeAll(
        from reader: inout VersionReader
    ) throws(SyncError) -> [MergedDataset] {
        let count = try reader.takeCount(
            of: "merged datasets", bytesEach: 2, max: SyncLimits.mergedDatasetsMax)
        var merged: [MergedDataset] = []
        for _ in 0..<count {
            let name = try reader.takeName()
            guard merged.last.map({ $0.name < name }) ?? true else {
                throw .badMessage("a list of merged datasets is not in order")
            }
            let origin = try reader.plain { reader throws(SyncError) in
                try reader.takeText("origin", max: SyncLimits.originBytesMax)
            }
            merged.append(MergedDataset(name: name, origin: origin))
        }
        guard count > 0 else { throw .badMessage("a list of merged datasets is empty") }
        return merged
    }
}

extension StoreMark {
    init(from reader: inout VersionReader) throws(SyncError) {
        self = try reader.plain { reader throws(SyncError) in
            let incarnation = try reader.takeFixed(UInt64.self)
            return StoreMark(incarnation: incarnation, position: try reader.takeVarint())
        }
    }
}

extension DatasetGreeting {
    init(from reader: inout VersionReader) throws(SyncError) {
        name = try reader.takeName()
        knowledge = try reader.takeFlag() ? try reader.takeKnowledge() : nil
        pulledThrough = try reader.takeSyncCount()
        pushedThrough = try reader.takeSyncCount()
        disputed = try reader.takeReplicas()
    }
}

extension PullRequest {
    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        since = try reader.takeSyncCount()
        recordsMax = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
        bytesMax = try reader.takeNumber(max: SyncLimits.pageBytesMax)
        vector = try reader.takeVector()
        batons = try reader.takeBatons()
        disputed = try reader.takeReplicas()
        isAfresh = try reader.takeFlag()
    }
}

extension PushRequest {
    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        since = try reader.takeSyncCount()
        acknowledged = try reader.takeSyncCount()
        page = try reader.takePage()
        disputed = try reader.takeReplicas()
        settled = try reader.takeVector()
        seen = try reader.takeVector()
    }
}

extension PushAnswer {
    init(from reader: inout VersionReader) throws(SyncError) {
        switch try reader.plain({ reader throws(SyncError) in try reader.takeByte() }) {
        case 0:
            outcome = .accepted(changed: try reader.takeNumber(max: SyncLimits.pageRecordsMax))
        case 1:
            let changed = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
            var keys: [[UInt8]] = []
            let count = try reader.takeCount(of: "keys", max: SyncLimits.conflictKeysMax)
            for _ in 0..<count {
                keys.append(
                    try reader.plain { reader throws(SyncError) in
                        try reader.takeBytes("key", max: Limits.keyBytesMax)
                    })
            }
            outcome = .conflicts(keys: keys, changed: changed)
        case 2:
            outcome = .gap(try reader.takeSyncCount())
        case 3:
            outcome = .late
        case let other:
            throw .badMessage("\(other) is no outcome of a push")
        }
        appliedAfter = try reader.takeFlag() ? try reader.takeSyncCount() : nil
        knowledge = try reader.takeKnowledge()
    }
}

extension InquiryRequest {
    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        page = try reader.takePage()
    }
}

extension BurialRequest {
    init(from reader: inout VersionReader) throws(SyncError) {
        address = try Address(from: &reader)
        page = try reader.takePage()
    }
}

extension InquiryAnswer {
    init(from reader: inout VersionReader) throws(SyncError) {
        absent = []
        let count = try reader.takeCount(of: "numbers", max: SyncLimits.pageRecordsMax)
        for _ in 0..<count {
            let number = try reader.takeNumber(max: SyncLimits.pageRecordsMax)
            guard absent.last.map({ $0 < number }) ?? true else {
                throw .badMessage("a list of numbers is not in order")
            }
            absent.append(number)
        }
        knowledge = try reader.takeKnowledge()
    }
}

extension Failure {
    init(from reader: inout VersionReader) throws(SyncError) {
        (code, message) = try reader.plain { reader throws(SyncError) in
            let code = try reader.takeText("error code", max: 64)
            let text = try reader.takeText("message", max: SyncLimits.failureTextBytesMax)
            return (code, text)
        }
    }
}
