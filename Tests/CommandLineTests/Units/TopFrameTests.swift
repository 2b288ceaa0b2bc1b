import Testing

@testable import tidemark

/// What the live view makes of two samples.
@Suite struct TopFrameTests {
    private func page(_ text: String) -> TopSample { TopSample(MetricsPage(text)) }

    private func frame(_ before: TopSample, _ after: TopSample, seconds: Double = 2) -> TopFrame {
        TopFrame(
            source: "http://hub:7300", time: "2026-11-21T06:30:00.000Z", from: before, to: after,
            seconds: seconds)
    }

    private func value(_ name: String, in frame: TopFrame) -> Double? {
        frame.sections.flatMap(\.rows).first { $0.name == name }?.value
    }

    @Test func pagesAreRead() {
        let page = MetricsPage(
            #"""
            # TYPE a counter
            a{route="x",status="200"} 3
            a{route="y\"\\\n,}",status="500"} 4.5
            b 1e3
            c_bucket{le="0.1"} 2
            c_bucket{le="+Inf"} 7
            broken{ 1
            worse{x="1} 2
            nothing
             1
            d NaN
            """#)
        #expect(page.sum("a") == 7.5)
        #expect(page.sum("a", ["status": "500"]) == 4.5)
        #expect(page.sum("a", ["route": "y\"\\\n,}"]) == 4.5)
        #expect(page.sum("a", ["status": "404"]) == nil)
        #expect(page.sum("b") == 1_000)
        #expect(page.sum("nothing") == nil && page.sum("broken") == nil)
        let histogram = page.histogram("c")
        #expect(histogram.map(\.bound) == [0.1, .infinity])
        #expect(histogram.map(\.count) == [2, 7])
        #expect(page.histogram("a").isEmpty)
    }

    @Test func ratesAreOfTheTimeInBetween() {
        let frame = frame(
            page("tidemark_store_puts 100\ntidemark_hub_messages{outcome=\"failure\"} 1\n"),
            page("tidemark_store_puts 150\ntidemark_hub_messages{outcome=\"failure\"} 1\n"))
        #expect(value("puts", in: frame) == 25)
        #expect(value("failures", in: frame) == 0)
        #expect(value("deletes", in: frame) == nil, "the page does not tell")
    }

    @Test func aHubThatWasStartedAnewCountsFromZero() {
        let frame = frame(page("tidemark_store_puts 100\n"), page("tidemark_store_puts 10\n"))
        #expect(value("puts", in: frame) == 5)
    }

    @Test func quantilesAreOfWhatCameInBetween() {
        func buckets(_ counts: [Int]) -> TopSample {
            let bounds = ["0.001", "0.01", "0.1", "+Inf"]
            let lines = zip(bounds, counts).map {
                "tidemark_hub_request_duration_seconds_bucket{le=\"\($0)\",route=\"sync\"} \($1)"
            }
            return page(lines.joined(separator: "\n"))
        }
        let usual = frame(
            buckets([1_000, 1_000, 1_000, 1_000]), buckets([1_000, 1_090, 1_100, 1_100]))
        #expect(value("requestTimeMedian", in: usual) == 0.01)
        #expect(value("requestTimeP99", in: usual) == 0.1)
        let beyond = frame(buckets([0, 0, 0, 0]), buckets([0, 0, 0, 5]))
        #expect(value("requestTimeMedian", in: beyond) == 0.1, "the last bound that is known")
        let idle = frame(buckets([1, 2, 3, 4]), buckets([1, 2, 3, 4]))
        #expect(value("requestTimeP99", in: idle) == 0)
    }

    @Test func framesFitTheTerminal() {
        var before = TopSample()
        var after = TopSample()
        for (number, figure) in TopFigure.allCases.enumerated() {
            before.counters[figure] = 0
            after.counters[figure] = Double(number) * 1e9
            after.gauges[figure] = Double(number) * 1e14
            after.durations[figure] = [(bound: 0.5, count: 1), (bound: .infinity, count: 2)]
        }
        for number in 0..<40 { after.datasets["dataset.\(number)." + long] = UInt64(number) << 40 }
        after.peerLags = [(peer: "5e1f00aa", lag: .max)]
        let frame = frame(before, after)
        for columns in [80, 132] {
            for line in frame.lines(columns: columns) {
                #expect(TerminalText.width(of: line) <= columns, "\(line)")
            }
            expectSafeForTerminal(frame.lines(columns: 80).joined(separator: "\n"))
        }
        #expect(frame.lines(columns: 80).count { $0.hasPrefix("dataset.") } == 10)
    }

    private var long: String { String(repeating: "x", count: 100) }

    @Test(
        arguments: [
            (0, TopFigure.Unit.perSecond, "0.00 /s"), (12_345, .perSecond, "12,345 /s"),
            (0.25, .share, "25 %"), (0.0125, .seconds, "12.50 ms"), (2, .seconds, "2.00 s"),
            (2_048, .bytesPerSecond, "2.0 KiB/s"), (-1, .count, "0"), (.nan, .count, "0"),
        ] as [(Double, TopFigure.Unit, String)])
    func figuresAsText(value: Double, unit: TopFigure.Unit, text: String) {
        #expect(TopFrame.text(value, unit) == text)
    }
}
