import Tidemark
import TidemarkHTTP
import TidemarkSync

func keepOrders(at path: String, hubURL: String, token: String) async throws {
    let store = try Store.open(at: path)
    let orders = try store.dataset("orders")
    try orders.put("2 tins of paint", for: "order-17")

    var batch = WriteBatch()
    batch.put("shipped", for: "order-17/state", in: orders)
    batch.delete("order-16", in: orders)
    try store.write(batch)

    let hub = HTTPTransport(url: hubURL, token: token)
    let result = try await orders.synchronize(with: hub)
    print("pulled \(result.pulled), pushed \(result.pushed)")
    await hub.shutdown()
    try store.close()
}
