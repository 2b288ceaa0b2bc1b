import Tidemark
import TidemarkHTTP
import TidemarkSync

func synchronizeOrders(of store: Store, hubURL: String, token: String) async throws {
    let hub = HTTPTransport(url: hubURL, token: token)
    let result = try await store.dataset("orders").synchronize(with: hub)
    print("pulled \(result.pulled), pushed \(result.pushed)")
    await hub.shutdown()
}
