import Foundation
import Glibc

func makeDirectory(_ path: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
}

/// Removes a file or a folder; a missing one is fine.
func removeFile(_ path: String) throws {
    if FileManager.default.fileExists(atPath: path) {
        try FileManager.default.removeItem(atPath: path)
    }
}

func copyFolder(_ source: String, to target: String) throws {
    try ChildProcess.run(ChildProcess.path(of: "cp"), ["-r", source, target])
}

/// Makes a file survive the loss of power.
func syncFile(_ path: String) throws {
    let descriptor = open(path, O_RDONLY)
    try require(descriptor >= 0, "\(path) does not open: system error \(errno)")
    defer { close(descriptor) }
    try require(fsync(descriptor) == 0, "\(path) does not sync: system error \(errno)")
}

/// Bytes of all files in a folder.
func folderBytes(_ path: String) throws -> Int {
    let manager = FileManager.default
    return try manager.subpathsOfDirectory(atPath: path).reduce(0) { sum, file in
        let attributes = try manager.attributesOfItem(atPath: "\(path)/\(file)")
        guard attributes[.type] as? FileAttributeType == .typeRegular else { return sum }
        return sum + ((attributes[.size] as? NSNumber)?.intValue ?? 0)
    }
}
