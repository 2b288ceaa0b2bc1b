import Tidemark

extension SyncMessage {
    /// The message as it travels.
    func encoded() throws(SyncError) -> [UInt8] {
        var writer = VersionWriter()
        switch self {
        case .hello(let request): request.write(to: &writer)
        case .pull(let request): request.write(to: &writer)
        case .push(let request): request.write(to: &writer)
        case .reconcile(let request): request.write(to: &writer)
        case .fetch(let request): request.write(to: &writer)
        case .segments(let request): request.address.write(to: &writer)
        case .segmentRange(let request): request.write(to: &writer)
        case .watch(let request): request.write(to: &writer)
        case .segmentsPush(let request): request.write(to: &writer)
        case .segmentRangePush(let request): request.write(to: &writer)
        case .scopedPull(let request): request.write(to: &writer)
        case .lookup(let request): request.write(to: &writer)
        case .partPush(let request): request.write(to: &writer)
        case .records(let request): request.write(to: &writer)
        case .inquiry(let request): request.write(to: &writer)
        case .burial(let request): request.write(to: &writer)
        case .sweep(let request): request.write(to: &writer)
        case .helloAnswer(let answer): answer.write(to: &writer)
        case .pullAnswer(let answer): writer.putPage(answer.page)
        case .pushAnswer(let answer): answer.write(to: &writer)
        case .reconcileAnswer(let answer): answer.write(to: &writer)
        case .fetchAnswer(let answer): answer.write(to: &writer)
        case .segmentsAnswer(let answer): answer.write(to: &writer)
        case .segmentRangeAnswer(let answer): answer.write(to: &writer)
        case .watchAnswer(let answer): answer.write(to: &writer)
        case .segmentsPushAnswer(let answer): answer.write(to: &writer)
        case .segmentRangePushAnswer(let answer): answer.write(to: &writer)
        case .scopedPullAnswer(let answer): answer.write(to: &writer)
        case .lookupAnswer(let answer): answer.write(to: &writer)
        case .recordsAnswer(let answer): answer.write(to: &writer)
        case .inquiryAnswer(let answer): answer.write(to: &writer)
        case .burialAnswer(let answer): writer.plain { $0.putCount(answer.buried) }
        case .sweepAnswer(let answer): answer.write(to: &writer)
        case .failure(let failure): failure.write(to: &writer)
        }
        let version = SyncLimits.protocolVersions.upperBound
        // The blocks of segments are compressed already, if that pays.
        return try MessageFrame(version: version, kind: kind.rawValue, body: writer.bytes)
            .encoded(isCompressible: kind != .segmentRangeAnswer && kind != .segmentRangePush)
    }
}

extension Address {
    /// As it names them, for what is written to follow on it.
    var replicas: [ReplicaID] { from == to ? [from] : [from, to] }

    func write(to writer: inout VersionWriter) {
        writer.putReplica(from)
        writer.putReplica(to)
        writer.plain {
            $0.putText(dataset)
            $0.putNames(moved)
        }
    }
}

extension ByteWriter {
    fileprivate mutating func putNames(_ names: [String]) {
        putCount(names.count)
        for name in names { putText(name) }
    }
}

extension HelloRequest {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putFixed(versions.lowerBound)
            $0.putFixed(versions.upperBound)
        }
        writer.putReplica(from)
        writer.plain {
            $0.putFlag(names != nil)
            if let names {
                $0.putCount(names.count)
                for name in names {
                    $0.putText(name)
                }
            }
            $0.putFlag(after != nil)
            if let after {
                $0.putText(after)
            }
            $0.putFixed(incarnation)
            $0.putCount(marks.count)
            for mark in marks {
                mark.write(to: &$0)
            }
        }
    }
}

extension HelloAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain { $0.putFixed(version) }
        writer.putReplica(replica)
        writer.plain { $0.putCount(datasets.count) }
        for dataset in datasets {
            dataset.write(to: &writer)
        }
        // Mostly nothing is to be merged, nothing was moved and no part is kept, and then there is
        // not a byte about it.
        let hasMerged = datasets.contains { !$0.merged.isEmpty }
        let hasMoved = datasets.contains { !$0.moved.isEmpty }
        let hasParts = datasets.contains(where: \.isPart)
        writer.plain {
            $0.put(
                (isComplete ? 1 : 0) | (hasMerged ? 2 : 0) | (hasMoved ? 4 : 0)
                    | (hasParts ? 8 : 0))
            for mark in [mark, changedSince] {
                $0.putFlag(mark != nil)
                mark?.write(to: &$0)
            }
            if hasMerged { writeMerged(to: &$0) }
            if hasMoved { writeMoved(to: &$0) }
            if hasParts { writeParts(to: &$0) }
        }
    }
}

extension HelloAnswer {
    private func writeMerged(to writer: inout ByteWriter) {
        let targets = datasets.indices.filter { !datasets[$0].merged.isEmpty }
        writer.putCount(targets.count)
        for index in targets {
            writer.putCount(index)
            writer.putCount(datasets[index].merged.count)
            for one in datasets[index].merged {
                writer.putText(one.name)
                writer.putText(one.origin)
            }
        }
    }

    private func writeMoved(to writer: inout ByteWriter) {
        let sources = datasets.indices.filter { !datasets[$0].moved.isEmpty }
        writer.putCount(sources.count)
        for index in sources {
            writer.putCount(index)
            writer.putNames(datasets[index].moved)
        }
    }

    private func writeParts(to writer: inout ByteWriter) {
        let parts = datasets.indices.filter { datasets[$0].isPart }
        writer.putCount(parts.count)
        for index in parts { writer.putCount(index) }
    }
}

extension StoreMark {
    func write(to writer: inout ByteWriter) {
        writer.putFixed(incarnation)
        writer.putVarint(position)
    }
}

extension DatasetGreeting {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putText(name)
            $0.putFlag(knowledge != nil)
        }
        if let knowledge {
            writer.putKnowledge(knowledge)
        }
        writer.plain {
            $0.putVarint(pulledThrough.rawValue)
            $0.putVarint(pushedThrough.rawValue)
        }
        writer.putReplicas(disputed)
    }
}

extension PullRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.plain {
            $0.putVarint(since.rawValue)
            $0.putCount(recordsMax)
            $0.putCount(bytesMax)
        }
        writer.putVector(vector)
        writer.putBatons(batons)
        writer.putReplicas(disputed)
        writer.plain { $0.putFlag(isAfresh) }
    }
}

extension PushRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.plain {
            $0.putVarint(since.rawValue)
            $0.putVarint(acknowledged.rawValue)
        }
        writer.putPage(page)
        writer.putReplicas(disputed)
        writer.putVector(settled)
        writer.putVector(seen)
    }
}

extension PushAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            switch outcome {
            case .accepted(let changed):
                $0.put(0)
                $0.putCount(changed)
            case .conflicts(let keys, let changed):
                $0.put(1)
                $0.putCount(changed)
                $0.putCount(keys.count)
                for key in keys {
                    $0.putBytes(key)
                }
            case .gap(let syncCount):
                $0.put(2)
                $0.putVarint(syncCount.rawValue)
            case .late:
                $0.put(3)
            }
            $0.putFlag(appliedAfter != nil)
            if let appliedAfter {
                $0.putVarint(appliedAfter.rawValue)
            }
        }
        writer.putKnowledge(knowledge)
    }
}

extension InquiryRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.putPage(page)
    }
}

extension BurialRequest {
    func write(to writer: inout VersionWriter) {
        address.write(to: &writer)
        writer.putPage(page)
    }
}

extension InquiryAnswer {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putCount(absent.count)
            for number in absent { $0.putCount(number) }
        }
        writer.putKnowledge(knowledge)
    }
}

extension Failure {
    func write(to writer: inout VersionWriter) {
        writer.plain {
            $0.putText(code)
            $0.putText(message)
        }
    }
}
