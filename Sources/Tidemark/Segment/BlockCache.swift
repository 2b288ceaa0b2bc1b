internal import Synchronization

/// Checked blocks of sealed segments, kept up to a number of bytes. When full, the blocks that
/// were not used since the hand last passed are let go (the CLOCK rule: Corbató, 1968).
final class BlockCache: Sendable {
    private struct Place: Hashable {
        let segment: UInt64
        let block: Int
    }

    private struct Slot {
        let place: Place
        let view: DataBlockView
        var wasUsed: Bool
    }

    private struct Shard {
        var slots: [Slot?] = []
        var free: [Int] = []
        var places: [Place: Int] = [:]
        var bytes = 0
        var hand = 0
    }

    /// More shards than cores, so that readers seldom meet.
    private static let shardCount = 16
    private let shards: [ShardBox]
    private let bytesMaxPerShard: Int

    private final class ShardBox: Sendable {
        let shard = Mutex(Shard())
    }

    init(bytesMax: Int) {
        shards = (0..<Self.shardCount).map { _ in ShardBox() }
        bytesMaxPerShard = bytesMax / Self.shardCount
    }

    func view(segment: UInt64, block: Int) -> DataBlockView? {
        let place = Place(segment: segment, block: block)
        return box(of: place).shard.withLock { shard in
            guard let index = shard.places[place] else { return nil }
            shard.slots[index]!.wasUsed = true
            return shard.slots[index]!.view
        }
    }

    func insert(_ view: DataBlockView, segment: UInt64, block: Int) {
        let place = Place(segment: segment, block: block)
        guard view.block.count <= bytesMaxPerShard else { return }
        box(of: place).shard.withLock { shard in
            guard shard.places[place] == nil else { return }
            while shard.bytes + view.block.count > bytesMaxPerShard {
                evict(from: &shard)
            }
            let index = shard.free.popLast() ?? shard.slots.count
            if index == shard.slots.count { shard.slots.append(nil) }
            shard.slots[index] = Slot(place: place, view: view, wasUsed: false)
            shard.places[place] = index
            shard.bytes += view.block.count
        }
    }

    /// Lets go of the blocks of a segment that is no longer part of the store.
    func removeAll(of segment: UInt64) {
        for box in shards {
            box.shard.withLock { shard in
                for (index, slot) in shard.slots.enumerated() {
                    if let slot, slot.place.segment == segment {
                        remove(slot, at: index, from: &shard)
                    }
                }
            }
        }
    }

    /// The shard holds at least one block, or it would not have to give room.
    private func evict(from shard: inout Shard) {
        while true {
            shard.hand = shard.hand + 1 < shard.slots.count ? shard.hand + 1 : 0
            guard let slot = shard.slots[shard.hand] else { continue }
            if slot.wasUsed {
                shard.slots[shard.hand]!.wasUsed = false
            } else {
                remove(slot, at: shard.hand, from: &shard)
                return
            }
        }
    }

    private func remove(_ slot: Slot, at index: Int, from shard: inout Shard) {
        shard.slots[index] = nil
        shard.free.append(index)
        shard.places[slot.place] = nil
        shard.bytes -= slot.view.block.count
    }

    private func box(of place: Place) -> ShardBox {
        let hash = place.segment &* 31 &+ UInt64(place.block)
        return shards[Int(hash % UInt64(Self.shardCount))]
    }
}
