internal import Glibc

/// Inputs made of the parts of real stores, from which a fuzzer starts.
struct FirstCorpus {
    let directory: String

    func write() {
        for target in FuzzTarget.allCases {
            unsafe mkdir("\(directory)/\(target.rawValue)", 0o755)
            for (number, input) in inputs(for: target).enumerated() {
                write(input, to: "\(directory)/\(target.rawValue)/real-\(number)")
            }
        }
    }

    private func write(_ bytes: [UInt8], to path: String) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        precondition(descriptor >= 0, "cannot write \(path)")
        let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
        precondition(count == bytes.count, "cannot write \(path)")
        close(descriptor)
    }

    private func inputs(for target: FuzzTarget) -> [[UInt8]] {
        var inputs: [[UInt8]] = []
        for (number, base) in BaseStore.all.enumerated() {
            let first = UInt8(number)
            switch target {
            case .segment, .store, .values:
                inputs.append([first, 0, 128, 0] + [8, 0, 0, 3, 4, 1, 0, 0, 0])
            case .manifest:
                let bytes = base.files["\(BaseStore.directory)/MANIFEST"] ?? []
                inputs.append([first, 0, 0, 0] + bytes.dropFirst(104))
            case .log:
                guard let path = base.path(ending: ".log").last else { continue }
                inputs.append([first, 0, 0, 0] + Self.blocks(of: base.files[path] ?? []))
            default:
                guard let part = target.part else { continue }
                inputs += Self.parts(part, of: base, first)
            }
        }
        return inputs
    }

    private static func parts(
        _ part: SegmentLayout.Part, of base: BaseStore, _ first: UInt8
    ) -> [[UInt8]] {
        var inputs: [[UInt8]] = []
        for (segment, path) in base.path(ending: ".seg").enumerated() {
            let layout = SegmentLayout(base.files[path] ?? [])
            for number in 0..<(part == .data || part == .compressedData ? 3 : 1) {
                let bytes = layout.bytes(of: part, number: number)
                if bytes.count < 5_000 {
                    inputs.append([first, UInt8(segment), UInt8(number), 64] + bytes)
                }
            }
        }
        return inputs
    }

    private static func blocks(of log: [UInt8]) -> [UInt8] {
        var blocks: [UInt8] = []
        var offset = 80
        while log.number32(at: offset + 8) > 0 {
            let count = Int(log.number32(at: offset + 8))
            guard count < 60_000 else { break }
            blocks += [UInt8(count & 0xFF), UInt8(count >> 8), log[offset + 22], 0]
            blocks += log.slice(offset + 24, count)
            offset += 24 + count
        }
        return blocks
    }
}
