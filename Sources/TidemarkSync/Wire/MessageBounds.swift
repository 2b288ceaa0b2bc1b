/// What a receiver takes in one message at most. The defaults are those of the protocol; who
/// answers strangers takes less, since a small message can stand for a lot of memory.
struct MessageBounds: Hashable, Sendable {
    /// Bytes of the body when it is unpacked.
    var bodyBytesMax = SyncLimits.messageBytesMax
    /// Entries of one vector, batons or ids in one list.
    var vectorEntriesMax = SyncLimits.vectorEntriesMax
    /// Entries of all of them together, each counted as often as it is referred to.
    var messageVectorEntriesMax = SyncLimits.messageVectorEntriesMax
}
