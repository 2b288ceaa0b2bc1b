#if Networking
import TidemarkHTTP

/// The page of a hub.
struct HubTopSource: TopSource {
    private let reader: MetricsReader

    init(url: String, token: String?) {
        reader = MetricsReader(url: url, token: token)
    }

    func sample() async throws -> TopSample {
        TopSample(MetricsPage(try await reader.page()))
    }

    func close() async {
        await reader.shutdown()
    }
}
#endif
