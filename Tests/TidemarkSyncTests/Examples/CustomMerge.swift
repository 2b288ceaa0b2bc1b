import Tidemark
import TidemarkSync

/// Orders are JSON documents. Of two states the one that is further on stands, an order that was
/// deleted stays deleted, and everything else is merged field by field.
func synchronizeOrders(
    _ orders: Dataset, with hub: any SyncTransport
) async throws -> SyncResult {
    let states = ["open", "paid", "shipped", "cancelled"]
    let merge = MergePolicy.custom { conflict in
        guard let ours = conflict.local.value, let theirs = conflict.remote.value else {
            return .delete
        }
        let sides = [try JSONValue(parsing: ours), try JSONValue(parsing: theirs)]
        let place = sides.compactMap { $0["state"]?.text }.compactMap(states.firstIndex(of:)).max()

        let merged = conflict.value(after: AutoMerge().resolution(of: conflict))
        var order = try JSONValue(parsing: merged ?? theirs)
        order["state"] = place.map { .string(states[$0]) }
        return .value(order.encoded)
    }
    return try await orders.synchronize(with: hub, options: SyncOptions(policy: merge))
}
