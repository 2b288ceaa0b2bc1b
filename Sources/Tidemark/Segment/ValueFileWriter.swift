/// Writes the value file of a segment that is being written, under the same number: a block for
/// each value, in the order of the entries.
///
/// A crash before the manifest names a segment that names the file leaves a file that belongs to
/// nothing; opening removes it.
final class ValueFileWriter {
    private let number: UInt64
    private let output: SegmentOutput

    init(
        number: UInt64, path: String, identity: StoreIdentity, options: StoreOptions,
        storage: any Storage
    ) throws(StoreError) {
        self.number = number
        let header = FileHeader(
            kind: .values, segment: number, identity: identity,
            madeAt: storage.wallClockMilliseconds())
        output = SegmentOutput(
            try storage.openFile(path, .create), segment: number, identity: identity,
            isCompressing: options.compression == .lz4)
        try output.append(header.bytes)
    }

    var byteCount: UInt64 { output.offset }

    func append(_ value: ByteView) throws(StoreError) -> ValueHandle {
        let block = unsafe try output.appendBlock(value.buffer, .value, mayCompress: true)
        return ValueHandle(file: number, block: block)
    }

    /// Makes the file durable. Returns its size.
    func finish() throws(StoreError) -> UInt64 {
        try output.finish([])
    }
}
