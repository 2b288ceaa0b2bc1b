/// What an input is taken for.
enum FuzzTarget: String, CaseIterable {
    /// One part of a segment replaced; the rest of the store as it was.
    case data, compressedData, changes, index, directory, changeDirectory, tables, datasets
    case collected, valueFiles
    /// Edits anywhere in a segment, or in any file of the store.
    case segment, store
    /// Edits anywhere in a value file.
    case values
    case manifest, log

    func run(_ input: [UInt8]) {
        guard input.count >= 4 else { return }
        let base = BaseStore.all[Int(input[0]) % BaseStore.all.count]
        switch self {
        case .segment: edit(base, input, ending: ".seg")
        case .store: edit(base, input, ending: "")
        case .values: edit(base, input, ending: ".val")
        case .manifest: replaceManifest(base, input)
        case .log: replaceLog(base, input)
        default: replacePart(base, input)
        }
    }

    var part: SegmentLayout.Part? {
        SegmentLayout.Part.allCases.first { "\($0)" == rawValue }
    }

    // MARK: - Parts of a segment

    private func replacePart(_ base: BaseStore, _ input: [UInt8]) {
        guard let part else { return }
        let segments = base.path(ending: ".seg")
        let path = segments[Int(input[1]) % segments.count]
        var layout = SegmentLayout(base.files[path] ?? [])
        layout.replace(
            part, number: Int(input[2]), with: Array(input.dropFirst(4)),
            rawCount: Int(input[3]) * 64)
        var files = base.files
        files[path] = layout.assembled(replaced: part)
        Exercise(files, writes: input[2] >= 240, isSegmentAlone: true, path: path).run()
    }

    // MARK: - Edits

    private func edit(_ base: BaseStore, _ input: [UInt8], ending: String) {
        let paths = base.path(ending: ending).filter { !$0.hasSuffix("LOCK") }
        let path = paths[Int(input[1]) % paths.count]
        var bytes = base.files[path] ?? []
        var rest = input.dropFirst(4)
        while rest.count >= 5 {
            let head = Array(rest.prefix(5))
            let place = Int(head.number32(at: 0) & 0xFF_FFFF) % max(1, bytes.count)
            let count = Int(head[4] & 0x3F)
            rest = rest.dropFirst(5)
            let new = Array(rest.prefix(count))
            switch head[3] & 7 {
            case 0: bytes.insert(contentsOf: new, at: place)
            case 1: bytes.removeSubrange(place..<min(bytes.count, place + count))
            case 2: bytes.removeSubrange(place...)
            default:
                for (index, byte) in new.enumerated() where place + index < bytes.count {
                    bytes[place + index] = byte
                }
            }
            rest = rest.dropFirst(count)
        }
        if input[2] & 15 != 15 {
            Checksums.mend(&bytes, name: path)
        }
        var files = base.files
        files[path] = bytes
        Exercise(
            files, writes: input[2] >= 128, isSegmentAlone: path.hasSuffix(".seg"), path: path
        ).run()
    }

    // MARK: - Manifest and log

    private func replaceManifest(_ base: BaseStore, _ input: [UInt8]) {
        let path = "\(BaseStore.directory)/MANIFEST"
        var bytes = Array((base.files[path] ?? []).prefix(104)) + input.dropFirst(4)
        Checksums.mend(&bytes, name: path)
        var files = base.files
        files[path] = bytes
        Exercise(files, writes: true, isSegmentAlone: false, path: path).run()
    }

    /// The input is blocks: 2 bytes length of the content, 1 byte epoch, 1 byte what the mark is
    /// and of which kind the block is; content.
    private func replaceLog(_ base: BaseStore, _ input: [UInt8]) {
        guard let path = base.path(ending: ".log").last, let old = base.files[path] else { return }
        var bytes = old.slice(0, 80)
        let identity = Checksums.identity(of: bytes)
        var rest = Array(input.dropFirst(4))
        while rest.count >= 4, bytes.count < 60_000 {
            let length = (Int(rest.number32(at: 0) & 0xFFFF) + 7) & ~7
            var head = [UInt8](repeating: 0, count: 24)
            head.put32(UInt32(length), at: 8)
            head.put32(rest[3] & 1 == 1 ? UInt32(bytes.count) : UInt32(rest[3] >> 4), at: 12)
            head.put32(old.number32(at: 16), at: 16)
            head[20] = rest[3] & 2 == 2 ? 2 : 1
            head[22] = rest[2]
            head[23] = rest[3] & 4 == 4 ? 0xFF : 0
            let content = Array(rest.dropFirst(4).prefix(length))
            let start = bytes.count
            bytes += head + content
            bytes += [UInt8](repeating: 0, count: length - content.count)
            Checksums.mendBlock(&bytes, at: start, identity)
            rest = Array(rest.dropFirst(4 + length))
        }
        bytes += [UInt8](repeating: 0, count: 4_096 - bytes.count % 4_096)
        var files = base.files
        files[path] = bytes
        // Nothing is expected of how far it was durable.
        let manifest = "\(BaseStore.directory)/MANIFEST"
        files[manifest] = Self.withoutClosedLog(files[manifest] ?? [])
        Exercise(files, writes: true, isSegmentAlone: false, path: path).run()
    }

    private static func withoutClosedLog(_ bytes: [UInt8]) -> [UInt8] {
        let storage = MemoryStorage(["\(BaseStore.directory)/MANIFEST": bytes])
        guard var manifest = try? Manifest.read(in: BaseStore.directory, storage: storage) else {
            return bytes
        }
        manifest.closedLog = 0
        return manifest.encoded(at: 0)
    }
}
