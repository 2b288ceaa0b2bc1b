import CoreMetrics
import Testing

@testable import TidemarkHub

/// The text that Prometheus reads.
struct PrometheusTests {
    @Test("counters, gauges and histograms, sorted, each with its kind")
    func text() {
        let registry = PrometheusRegistry()
        let errors = registry.makeCounter(
            label: "requests.total", dimensions: [("status", "500"), ("route", "a\"b\\c\nd")])
        errors.increment(by: 2)
        registry.makeCounter(label: "requests.total", dimensions: []).increment(by: 1)
        registry.makeFloatingPointCounter(label: "seconds", dimensions: []).increment(by: 0.5)
        let meter = registry.makeMeter(label: "level", dimensions: [])
        meter.set(Int64(7))
        meter.decrement(by: 2)
        let timer = registry.makeTimer(label: "duration", dimensions: [("k", "v")])
        timer.recordNanoseconds(2_000_000)
        timer.recordNanoseconds(60_000_000_000)
        let lines = registry.text().split(separator: "\n").map(String.init)
        #expect(
            lines.prefix(2) == [
                "# TYPE duration_seconds histogram",
                #"duration_seconds_bucket{k="v",le="0.0001"} 0"#,
            ])
        #expect(lines.contains(#"duration_seconds_bucket{k="v",le="0.0025"} 1"#))
        #expect(lines.contains(#"duration_seconds_bucket{k="v",le="30"} 1"#))
        #expect(lines.contains(#"duration_seconds_bucket{k="v",le="+Inf"} 2"#))
        #expect(lines.contains(#"duration_seconds_count{k="v"} 2"#))
        #expect(lines.contains(#"duration_seconds_sum{k="v"} 60.002"#))
        #expect(lines.contains("# TYPE level gauge"))
        #expect(lines.contains("level 5"))
        #expect(lines.filter { $0 == "# TYPE requests_total counter" }.count == 1)
        #expect(lines.contains("requests_total 1"))
        #expect(lines.contains(#"requests_total{route="a\"b\\c\nd",status="500"} 2"#))
        #expect(lines.contains("seconds 0.5"))
    }

    @Test("the same series is counted in one place, however often it is asked for")
    func same() {
        let registry = PrometheusRegistry()
        for _ in 0..<3 {
            registry.makeCounter(label: "c", dimensions: [("a", "1"), ("b", "2")])
                .increment(by: 1)
            // In whatever order the dimensions come.
            registry.makeCounter(label: "c", dimensions: [("b", "2"), ("a", "1")])
                .increment(by: 1)
        }
        #expect(registry.text() == "# TYPE c counter\nc{a=\"1\",b=\"2\"} 6\n")
    }

    @Test("what is destroyed is not told any more")
    func destroyed() {
        let registry = PrometheusRegistry()
        let counter = registry.makeCounter(label: "c", dimensions: [])
        registry.destroyCounter(counter)
        #expect(registry.text().isEmpty)
    }

    @Test("series are bounded, and a name has one kind")
    func bounds() {
        let registry = PrometheusRegistry(seriesMax: 3)
        for number in 0..<100 {
            registry.makeCounter(label: "c", dimensions: [("n", "\(number)")]).increment(by: 1)
        }
        registry.makeMeter(label: "c", dimensions: []).set(Int64(1))
        let lines = registry.text().split(separator: "\n")
        #expect(lines.count == 4)
        #expect(!lines.contains("c 1"))
    }

    @Test("names are made of what names may be made of")
    func names() {
        #expect(PrometheusText.name("1a.b-c") == "_a_b_c")
        #expect(PrometheusText.name("") == "_")
        #expect(PrometheusText.name("a:b_c1") == "a:b_c1")
    }

    @Test("the hub's own metrics, by its words")
    func ownMetrics() {
        let registry = PrometheusRegistry()
        let metrics = HubMetrics(factory: registry)
        metrics.began()
        metrics.ended("ListRecords", status: 200, duration: .milliseconds(3))
        metrics.began()
        metrics.refused("InvalidSignatureException")
        let text = registry.text()
        #expect(
            text.contains(#"tidemark_hub_requests_total{route="ListRecords",status="200"} 1"#))
        #expect(text.contains("tidemark_hub_in_flight 1\n"))
        #expect(
            text.contains(#"tidemark_hub_refusals_total{code="InvalidSignatureException"} 1"#))
        #expect(
            text.contains(
                #"tidemark_hub_request_duration_seconds_count{route="ListRecords"} 1"#))
    }
}
