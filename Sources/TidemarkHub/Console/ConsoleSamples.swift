import Synchronization
import Tidemark

/// How the store and the hub have fared, a sample each ``ConsoleLimits/samplePeriod`` and no more
/// than ``ConsoleLimits/samplesMax`` of them: what the charts are drawn of.
final class ConsoleSamples: Sendable {
    /// Rates are by the second, since the sample before.
    struct Sample: Hashable, Sendable {
        /// Milliseconds since 1970.
        let time: UInt64
        var puts = 0.0
        var deletes = 0.0
        var loggedBytes = 0.0
        /// Milliseconds that a sync of the log took on average; 0 if there was none.
        var syncMilliseconds = 0.0
        var requests = 0.0
        /// Milliseconds within which a half and 99 in 100 of the requests were answered; 0 if there
        /// was none. As near as the bounds of the histogram are.
        var medianMilliseconds = 0.0
        var slowMilliseconds = 0.0
        /// Of merges.
        var bytesMergedIn = 0.0
        var bytesMergedOut = 0.0
        var runs = 0
        var segments = 0
        var segmentBytes: UInt64 = 0
        var logBytes: UInt64 = 0
    }

    private struct State {
        var samples: [Sample] = []
        /// Where the next one goes once there are all.
        var next = 0
        var counters: StoreCounters?
        var durations: HistogramCell.State?
        var time: UInt64 = 0
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - durations: of all requests since the hub started.
    ///   - now: milliseconds since 1970.
    func take(_ counters: StoreCounters, _ durations: HistogramCell.State, at now: UInt64) {
        state.withLock { state in
            let sample = Self.sample(counters, durations, after: state, at: now)
            state.counters = counters
            state.durations = durations
            state.time = now
            guard state.samples.count == ConsoleLimits.samplesMax else {
                state.samples.append(sample)
                return
            }
            state.samples[state.next] = sample
            state.next = (state.next + 1) % state.samples.count
        }
    }

    /// The oldest first.
    var all: [Sample] {
        state.withLock { Array($0.samples[$0.next...] + $0.samples[..<$0.next]) }
    }

    private static func sample(
        _ counters: StoreCounters, _ durations: HistogramCell.State, after state: State,
        at now: UInt64
    ) -> Sample {
        var sample = Sample(time: now)
        sample.runs = counters.runCount
        sample.segments = counters.segmentCount
        sample.segmentBytes = counters.segmentBytes
        sample.logBytes = counters.logBytes
        // Of another opening of the store nothing can be taken away.
        guard let former = state.counters, former.opening == counters.opening, now > state.time
        else { return sample }
        let seconds = Double(now - state.time) / 1_000
        func rate<Count: BinaryInteger>(_ figure: (StoreCounters) -> Count) -> Double {
            Double(growth(figure(counters), since: figure(former))) / seconds
        }
        sample.puts = rate(\.puts)
        sample.deletes = rate(\.deletes)
        sample.loggedBytes = rate(\.bytesLogged)
        sample.bytesMergedIn = rate(\.bytesMergedIn)
        sample.bytesMergedOut = rate(\.bytesMergedOut)
        let syncs = growth(counters.syncs, since: former.syncs)
        if syncs > 0 {
            let time = counters.syncTime - former.syncTime
            sample.syncMilliseconds = time / .milliseconds(1) / Double(syncs)
        }
        let counts = counts(durations, since: state.durations)
        sample.requests = Double(counts.reduce(0, +)) / seconds
        sample.medianMilliseconds = quantile(0.5, of: counts)
        sample.slowMilliseconds = quantile(0.99, of: counts)
        return sample
    }

    /// A counter that has gone back has grown by nothing: a page of figures ends no hub.
    private static func growth<Count: BinaryInteger>(_ now: Count, since former: Count) -> Count {
        now - min(now, former)
    }

    private static func counts(
        _ now: HistogramCell.State, since former: HistogramCell.State?
    ) -> [UInt64] {
        guard let former else { return now.counts }
        return zip(now.counts, former.counts).map { growth($0, since: $1) }
    }

    /// The upper bound of the bucket in which the value lies, in milliseconds.
    private static func quantile(_ part: Double, of counts: [UInt64]) -> Double {
        let all = counts.reduce(0, +)
        guard all > 0 else { return 0 }
        let bounds = HistogramCell.seconds
        let rank = Double(all) * part
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() {
            seen += count
            guard Double(seen) >= rank else { continue }
            return bounds[min(index, bounds.count - 1)] * 1_000
        }
        return 0
    }

    // MARK: - Telling

    /// Those behind a time, the oldest first.
    func answer(since time: UInt64) -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.add("periodSeconds", Int(ConsoleLimits.samplePeriod.components.seconds))
        answer.open("[", as: "samples")
        for sample in all where sample.time > time {
            answer.open("{")
            answer.add("time", sample.time)
            for (name, number) in sample.rates { answer.add(name, real: number) }
            answer.add("runs", sample.runs)
            answer.add("segments", sample.segments)
            answer.add("segmentBytes", sample.segmentBytes)
            answer.add("logBytes", sample.logBytes)
            answer.close("}")
        }
        answer.close("]")
        answer.close("}")
        return answer.bytes
    }
}

extension ConsoleSamples.Sample {
    fileprivate var rates: [(String, Double)] {
        [
            ("puts", puts), ("deletes", deletes), ("loggedBytes", loggedBytes),
            ("syncMilliseconds", syncMilliseconds), ("requests", requests),
            ("medianMilliseconds", medianMilliseconds), ("slowMilliseconds", slowMilliseconds),
            ("bytesMergedIn", bytesMergedIn), ("bytesMergedOut", bytesMergedOut),
        ]
    }
}
