/// One line of a change index: which entry of the segment a sync count of a dataset is.
struct ChangePlace: Comparable {
    var dataset: DatasetID
    var syncCount: UInt64
    /// The number of the data block, and of the entry in it.
    var block: UInt32
    var slot: UInt32

    static func < (left: ChangePlace, right: ChangePlace) -> Bool {
        (left.dataset, left.syncCount) < (right.dataset, right.syncCount)
    }

    /// A block of kind `changes`: the number of lines, then each as four varints, the dataset and
    /// (within one dataset) the sync count as the difference to the line before.
    static func encode(_ places: ArraySlice<ChangePlace>) -> [UInt8] {
        var writer = ByteWriter()
        // Most lines take four bytes or five; a few more at once spare the growing.
        writer.reserve(8 * places.count)
        writer.append(varint: places.count)
        var previous = ChangePlace(dataset: 0, syncCount: 0, block: 0, slot: 0)
        for place in places {
            writer.append(varint: UInt64(place.dataset - previous.dataset))
            let isSame = place.dataset == previous.dataset
            writer.append(varint: isSame ? place.syncCount - previous.syncCount : place.syncCount)
            writer.append(varint: UInt64(place.block))
            writer.append(varint: UInt64(place.slot))
            previous = place
        }
        return writer.bytes
    }

    static func decode(_ bytes: ByteView) throws(Malformed) -> [ChangePlace] {
        var reader = ByteReader(bytes)
        var places: [ChangePlace] = []
        var previous = ChangePlace(dataset: 0, syncCount: 0, block: 0, slot: 0)
        for _ in 0..<(try reader.count(eachAtLeast: 4)) {
            let step = try reader.varint32()
            let (dataset, isTooFar) = previous.dataset.addingReportingOverflow(step)
            let count = try reader.varint()
            let (sum, isTooLarge) = previous.syncCount.addingReportingOverflow(count)
            let place = ChangePlace(
                dataset: dataset, syncCount: step == 0 ? sum : count,
                block: try reader.varint32(), slot: try reader.varint32())
            guard !isTooFar, step > 0 || !isTooLarge, previous < place else {
                throw Malformed("a change index is out of order")
            }
            places.append(place)
            previous = place
        }
        guard reader.isAtEnd, !places.isEmpty else {
            throw Malformed("a change index has the wrong length")
        }
        return places
    }
}
