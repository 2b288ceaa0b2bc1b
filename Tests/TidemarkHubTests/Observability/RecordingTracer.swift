import Synchronization
import Tracing

/// A tracer that keeps what it is told, and passes traces on by the header `traceparent` of W3C's
/// Trace Context, as most tracers do.
final class RecordingTracer: Tracer {
    typealias Span = RecordedSpan

    /// Where a span is: its trace, and its name in it.
    struct Place: Hashable, Sendable {
        let trace: String
        let id: String

        init(trace: String, id: String) {
            self.trace = trace
            self.id = id
        }

        /// nil for what is no such header.
        init?(traceparent: String) {
            let parts = traceparent.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 4, parts[1].count == 32, parts[2].count == 16 else { return nil }
            self.init(trace: String(parts[1]), id: String(parts[2]))
        }

        var traceparent: String { "00-\(trace)-\(id)-01" }
    }

    fileprivate enum PlaceKey: InstrumentationContextKey {
        typealias Value = Place
    }

    private let state = Mutex<[RecordedSpan]>([])

    /// In the order of their beginnings.
    var spans: [RecordedSpan] { state.withLock { $0 } }

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> InstrumentationContext,
        ofKind kind: SpanKind, at instant: @autoclosure () -> Instant, function: String,
        file fileID: String, line: UInt
    ) -> RecordedSpan {
        var context = context()
        let parent = context[PlaceKey.self]
        return state.withLock { spans in
            let id = Self.padded(spans.count + 1, to: 16)
            let place = Place(trace: parent?.trace ?? Self.padded(spans.count + 1, to: 32), id: id)
            context[PlaceKey.self] = place
            let span = RecordedSpan(
                operationName, context: context, kind: kind, place: place, parent: parent)
            spans.append(span)
            return span
        }
    }

    func forceFlush() {}

    func extract<Carrier, Extract>(
        _ carrier: Carrier, into context: inout InstrumentationContext, using extractor: Extract
    ) where Extract: Extractor, Extract.Carrier == Carrier {
        let field = extractor.extract(key: "traceparent", from: carrier)
        context[PlaceKey.self] = field.flatMap { Place(traceparent: $0) }
    }

    func inject<Carrier, Inject>(
        _ context: InstrumentationContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject: Injector, Inject.Carrier == Carrier {
        guard let place = context[PlaceKey.self] else { return }
        injector.inject(place.traceparent, forKey: "traceparent", into: &carrier)
    }

    private static func padded(_ number: Int, to count: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: count - digits.count) + digits
    }
}

/// A span, and all that became of it.
final class RecordedSpan: Tracing.Span {
    private struct State {
        var operationName: String
        var attributes = SpanAttributes()
        var status: SpanStatus?
        /// What was told beside the attributes: events, links and errors.
        var others: [String] = []
        var isEnded = false
    }

    let context: InstrumentationContext
    let kind: SpanKind
    let place: RecordingTracer.Place
    let parent: RecordingTracer.Place?
    private let state: Mutex<State>

    init(
        _ operationName: String, context: InstrumentationContext, kind: SpanKind,
        place: RecordingTracer.Place, parent: RecordingTracer.Place?
    ) {
        self.context = context
        self.kind = kind
        self.place = place
        self.parent = parent
        state = Mutex(State(operationName: operationName))
    }

    var operationName: String {
        get { state.withLock { $0.operationName } }
        set { state.withLock { $0.operationName = newValue } }
    }

    var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { state.withLock { $0.attributes = newValue } }
    }

    var isRecording: Bool { state.withLock { !$0.isEnded } }
    var isFailed: Bool { state.withLock { $0.status?.code == .error } }

    func setStatus(_ status: SpanStatus) {
        state.withLock { $0.status = status }
    }

    func addEvent(_ event: SpanEvent) {
        state.withLock { $0.others.append("\(event)") }
    }

    func addLink(_ link: SpanLink) {
        state.withLock { $0.others.append("\(link)") }
    }

    func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        state.withLock { $0.others.append("\(error) \(attributes)") }
    }

    func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        state.withLock { $0.isEnded = true }
    }

    /// The attributes by their names, as texts.
    var texts: [String: String] {
        var texts: [String: String] = [:]
        attributes.forEach { name, value in
            switch value {
            case .string(let text): texts[name] = text
            case .int64(let number): texts[name] = "\(number)"
            default: texts[name] = "\(value)"
            }
        }
        return texts
    }

    /// All that it says, to look for what it must not say.
    var everything: String {
        let others = state.withLock { $0.others + [$0.status?.message ?? ""] }
        return "\(operationName) \(texts) \(others)"
    }
}
