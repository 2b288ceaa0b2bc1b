/// A file of a store that never changes, a segment or a value file, as something to be copied.
struct SealedFile {
    let name: String
    let number: UInt64
    let path: String
    let fileSize: UInt64
    let file: any StorageFile
    let isValueFile: Bool
    /// Where bytes lie by which the file is known: its header, which says to the millisecond when
    /// it was made, and the footer of a segment or the head of the first value.
    let identity: [(offset: UInt64, count: Int)]

    init(_ segment: SealedSegment) {
        name = FileName.sealed(segment.number)
        number = segment.number
        path = segment.path
        fileSize = segment.fileSize
        file = segment.file
        isValueFile = false
        identity = [
            (0, FileHeader.byteCount),
            (fileSize - UInt64(SegmentFooter.byteCount), SegmentFooter.byteCount),
        ]
    }

    init(_ values: ValueFile) {
        name = FileName.values(values.number)
        number = values.number
        path = values.path
        fileSize = values.fileSize
        file = values.file
        isValueFile = true
        let head = FileHeader.byteCount + BlockHeader.byteCount
        identity = [(0, min(head, Int(fileSize)))]
    }
}
