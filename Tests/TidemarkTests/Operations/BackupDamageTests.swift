import TestSupport
import Testing
import Tidemark

/// The files of a backup are damaged, one byte at a time, or cut short. Whoever reads the backup,
/// restores from it or makes the next backup into the same place meets a typed error, or nothing
/// that is wrong.
@Suite("Damage to backups")
struct BackupDamageTests {
    private static let codes: [StoreError.Code] = [
        .corruption, .notAStore, .formatTooNew, .formatTooOld, .invalidArgument,
    ]

    @Test("The backup of these tests is whole before it is damaged")
    func whole() throws {
        let backup = try DamagedBackup()
        #expect(try backup.read() == backup.first)
        #expect(backup.endings == ["", ".log", ".seg", ".val"])
        try backup.store.backup(to: DamagedBackup.path, linksFiles: false)
        #expect(try backup.read() == backup.second)
        try backup.reset()
        #expect(try backup.read() == backup.first)
    }

    @Test("Whoever reads it is told, or reads what is right")
    func reading() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let backup = try DamagedBackup()
            for damage in backup.damages(step: 3, &random) {
                backup.apply(damage)
                let found = try backup.read()
                try require(found == nil || found == backup.first, "\(damage): reads differ")
                // The mark is for those who write. What is behind the last block of a log is not
                // part of it, and the block that says how far it is durable may be missing.
                let mayPass = damage.file == "BACKUP" || damage.file.hasSuffix(".log")
                try require(mayPass || found == nil, "\(damage): not noticed")
                backup.undo(damage)
            }
        }
    }

    @Test("Whoever restores from it is told then, or by the restored store, or it is right")
    func restoring() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let backup = try DamagedBackup()
            var (failed, restored) = (0, 0)
            for damage in backup.damages(step: 7, &random) {
                backup.apply(damage)
                do {
                    try Store.restore(
                        from: DamagedBackup.path, to: "/restored", linksFiles: false,
                        storage: backup.storage)
                    restored += 1
                    let found = try backup.read("/restored")
                    try require(found == nil || found == backup.first, "\(damage): differs")
                } catch let error as StoreError {
                    failed += 1
                    try require(Self.codes.contains(error.code), "\(damage): \(error)")
                    try require(try backup.read("/restored") == nil, "\(damage): half a store")
                }
                try backup.removeAll(in: "/restored")
                backup.undo(damage)
            }
            try require(failed > 50 && restored > 20, "\(failed) failed, \(restored) did not")
        }
    }

    @Test("The next backup into the same place is refused and changes nothing, or it is right")
    func nextBackup() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let backup = try DamagedBackup()
            var (failed, made) = (0, 0)
            for damage in backup.damages(step: 11, &random) {
                backup.apply(damage)
                do {
                    try backup.store.backup(to: DamagedBackup.path, linksFiles: false)
                    made += 1
                    // A segment that is kept may be damaged in its blocks, which reading tells.
                    let found = try backup.read()
                    try require(found == nil || found == backup.second, "\(damage): differs")
                    let isKept = damage.file.hasSuffix(".seg") || damage.file.hasSuffix(".val")
                    try require(isKept || found != nil, "\(damage): the new backup is damaged")
                } catch let error as StoreError {
                    failed += 1
                    try require(Self.codes.contains(error.code), "\(damage): \(error)")
                    try require(
                        try backup.names() == backup.files.keys.sorted(), "\(damage): other files")
                    for name in backup.files.keys where name != damage.file {
                        try require(backup.isAsItWas(name), "\(damage): \(name) was changed")
                    }
                }
                try backup.reset()
            }
            try require(failed > 150 && made > 20, "\(failed) failed, \(made) were made")
        }
    }

    @Test("A mark of a newer format is refused as such")
    func newerMark() throws {
        let backup = try DamagedBackup()
        var mark = try #require(backup.files["BACKUP"])
        mark[8] = 3
        let checksum = unsafe mark[..<72].withUnsafeBytes { unsafe checksum64($0) }
        for index in 0..<8 {
            mark[72 + index] = UInt8(truncatingIfNeeded: checksum >> UInt64(8 * index))
        }
        backup.storage.setContents(of: "\(DamagedBackup.path)/BACKUP", to: mark)
        expectError(.formatTooNew) {
            try backup.store.backup(to: DamagedBackup.path, linksFiles: false)
        }
        #expect(try backup.read() == backup.first)
    }

    @Test("What was left under a temporary name is never read, and goes", arguments: [true, false])
    func temporaries(isFinished: Bool) throws {
        let backup = try DamagedBackup()
        var random = SeededGenerator(Seed(8))
        for (name, bytes) in backup.files.sorted(by: { $0.key < $1.key }) {
            var leftovers = [bytes, random.bytes(bytes.count), []]
            leftovers += (0..<4).map { _ in Array(bytes.prefix(random.below(bytes.count))) }
            for leftover in leftovers {
                if !isFinished { try backup.remove("MANIFEST") }
                backup.storage.setContents(
                    of: "\(DamagedBackup.path)/\(name).new", to: leftover)
                #expect(try backup.read() == (isFinished ? backup.first : nil), "\(name)")
                try backup.store.backup(to: DamagedBackup.path, linksFiles: false)
                #expect(try backup.read() == backup.second, "\(name)")
                #expect(try !backup.names().contains { $0.hasSuffix(".new") }, "\(name)")
                try backup.reset()
            }
        }
        // Nothing at all but the mark's own, as the very first step leaves it.
        for count in [0, 10, 80, 100] {
            try backup.removeAll(in: DamagedBackup.path)
            backup.storage.setContents(
                of: "\(DamagedBackup.path)/BACKUP.new", to: random.bytes(count))
            try backup.store.backup(to: DamagedBackup.path, linksFiles: false)
            #expect(try backup.read() == backup.second, "\(count)")
        }
    }

    @Test("A manifest that was half written is never read, and goes with the next opening")
    func halfManifest() throws {
        let backup = try DamagedBackup()
        try backup.store.close()
        let storage = backup.storage
        let manifest = try #require(storage.contents(of: "\(simulatedPath)/MANIFEST"))
        let path = "\(simulatedPath)/MANIFEST.new"
        for place in manifest.indices {
            var flipped = manifest
            flipped[place] ^= 1 << UInt8(place % 8)
            for leftover in [Array(manifest.prefix(place)), flipped] {
                storage.setContents(of: path, to: leftover)
                #expect(try backup.read(simulatedPath) == backup.second, "at \(place)")
            }
            guard place % 16 == 0 else { continue }
            let store = try openSimulated(storage, DamagedBackup.options)
            #expect(storage.contents(of: path) == nil)
            #expect(try StoreContents(store) == backup.second, "at \(place)")
            try store.close()
        }
    }
}
