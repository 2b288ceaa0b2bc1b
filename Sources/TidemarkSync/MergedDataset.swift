public import Tidemark

/// A dataset that is to go into another one: what somebody had under another identity, before the
/// two were linked.
///
/// That it is one is an attribute, and its name is like any other.
public struct MergedDataset: Hashable, Sendable {
    /// The dataset that holds what was there.
    public let name: String
    /// Whose it was, as whoever linked the identities called it; at most
    /// ``SyncLimits/originBytesMax`` bytes.
    public let origin: String

    public init(name: String, origin: String) {
        self.name = name
        self.origin = origin
    }
}

/// Datasets that are to go into one of ours, with what they hold. They are here by the time that
/// the handler is asked.
public struct MergedDatasets: Sendable {
    /// The dataset into which they are to go.
    public let dataset: String
    /// The other side, which told of them.
    public let peer: ReplicaID
    /// In the order of their names.
    public let merged: [MergedDataset]
    let store: Store

    /// What one of them holds.
    /// - Throws: `datasetNotFound` if it is gone by now; `closed`, `corruption`, `inputOutput`.
    public func records(of merged: MergedDataset) throws(StoreError) -> RecordCursor {
        guard let dataset = try store.existingDataset(merged.name) else {
            throw StoreError(
                .datasetNotFound, "the dataset \(merged.name) is gone; it may have been merged")
        }
        return try dataset.records()
    }
}

/// What to do with merged datasets.
public enum MergedDatasetsAction: Sendable {
    /// Nothing for now; they are told of again by the next exchange.
    case leave
    /// Moves their records into the dataset and retires them: they are deleted on both sides. Of a
    /// key that both have the policy decides, without an ancestor.
    case merge(MergePolicy)
    /// Deletes them on both sides with all that they hold.
    case discard
}

/// What came of merging one dataset into another.
public struct DatasetMergeResult: Hashable, Sendable {
    /// Records that were moved, or were there already with the same value.
    public internal(set) var moved = 0
    /// Of these, the ones about which the policy was asked.
    public internal(set) var conflicts = 0
    /// Records that were left where they are, because the policy decided nothing, or because a
    /// write to them is held: see ``QuarantinedWrite``.
    public internal(set) var left = 0
    /// Whether the dataset is deleted now, which it is if nothing was left in it.
    public internal(set) var isRetired = false
}
