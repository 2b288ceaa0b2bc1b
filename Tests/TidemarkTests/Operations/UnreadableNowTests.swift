import Glibc
import TestSupport
import Testing
import Tidemark

/// What this process cannot read now, for lack of a right, a descriptor or memory, may be whole:
/// it fails the attempt, and counts as no loss and no damage.
@Suite("Files that cannot be read now")
struct UnreadableNowTests {
    private static let files = ["MANIFEST", ".seg", ".log", ".val"]

    private func storage(
        _ call: SystemCall, of ending: String, with number: Int32
    ) -> SystemStorage {
        SystemStorage(faults: LastingFault(call, of: ending, with: number))
    }

    /// A closed store with one file of each kind.
    private func damagedStore() throws -> DamagedStore {
        try DamagedStore(largeValueBytes: 200)
    }

    /// Expects the failure of an attempt that names the file.
    private func expectFailure<Result>(
        _ number: Int32, at path: String, _ body: () throws -> Result
    ) {
        let error = expectError(.inputOutput, body)
        #expect(error?.systemError == number && error?.isOfEnvironment == true)
        #expect(error?.location?.path == path)
    }

    @Test(
        "A repair fails as a whole, and makes no store",
        arguments: files, [EACCES, EMFILE, ENFILE, ENOMEM])
    func repair(ending: String, number: Int32) throws {
        let store = try damagedStore()
        let path = "\(store.path)/\(try store.file(ending))"
        let target = store.directory["repaired"]
        let storage = storage(.open, of: ending, with: number)
        expectFailure(number, at: path) {
            try Store.planRepair(at: store.path, storage: storage)
        }
        expectFailure(number, at: path) {
            try Store.repair(at: store.path, to: target, storage: storage)
        }
        #expect(!Files.exists(target))
        // Another attempt has everything.
        #expect(try Store.repair(at: store.path, to: target).isComplete)
    }

    @Test("So it does without a manifest", arguments: [".seg", ".log", ".val"])
    func noManifest(ending: String) throws {
        let store = try damagedStore()
        try Files.remove("\(store.path)/MANIFEST")
        let path = "\(store.path)/\(try store.file(ending))"
        let storage = storage(.open, of: ending, with: EMFILE)
        expectFailure(EMFILE, at: path) {
            try Store.planRepair(at: store.path, storage: storage)
        }
    }

    @Test("Nor is a page lost for which there is no memory", arguments: [".seg", ".log", ".val"])
    func pages(ending: String) throws {
        let store = try damagedStore()
        let path = "\(store.path)/\(try store.file(ending))"
        for number in [ENOMEM, EAGAIN] {
            let storage = storage(.madvise, of: ending, with: number)
            expectFailure(number, at: path) {
                try Store.planRepair(at: store.path, storage: storage)
            }
        }
    }

    @Test("One file that is read by itself", arguments: [".seg", ".log", ".val"])
    func salvage(ending: String) throws {
        let store = try damagedStore()
        let path = "\(store.path)/\(try store.file(ending))"
        let storage = storage(.open, of: ending, with: EACCES)
        expectFailure(EACCES, at: path) {
            try Store.salvage(fileAt: path, storage: storage) { _ in }
        }
    }

    @Test("What the disk cannot read is a loss", arguments: files)
    func sectors(ending: String) throws {
        let store = try damagedStore()
        let name = try store.file(ending)
        let opening = storage(.open, of: ending, with: EIO)
        let report = try Store.planRepair(at: store.path, storage: opening)
        let kind: RepairReport.Loss.Kind = ending == "MANIFEST" ? .manifest : .missingFile
        #expect(report.losses.contains { $0.file == name && $0.kind == kind })
        guard ending == ".seg" else { return }
        for number in [EIO, EFAULT, EHWPOISON] {
            let pages = storage(.madvise, of: ending, with: number)
            let report = try Store.planRepair(at: store.path, storage: pages)
            #expect(report.losses.contains { $0.file == name && $0.kind == .block })
        }
    }

    @Test("A file that is missing is a loss where the manifest names it")
    func missing() throws {
        let store = try damagedStore()
        let name = try store.file(".seg")
        try Files.remove("\(store.path)/\(name)")
        let report = try Store.planRepair(at: store.path)
        #expect(report.losses.contains { $0.file == name && $0.kind == .missingFile })
    }

    @Test("Damage is told without it: nothing is known of such a page")
    func damageFound() throws {
        let store = try damagedStore()
        let faults = LastingFault(.madvise, of: ".val", with: ENOMEM)
        var options = apartOptions(200)
        options.isReadOnly = true
        let opened = try Store.open(
            at: store.path, options: options, storage: SystemStorage(faults: faults))
        let path = "\(store.path)/\(try store.file(".val"))"
        expectFailure(ENOMEM, at: path) {
            try opened.dataset("main").records().collect()
        }
        #expect(try opened.damage().isEmpty)
        expectFailure(ENOMEM, at: path) { try opened.verify() }
        #expect(try opened.damage().isEmpty)
        try opened.close()
    }

    @Test("A repair keeps few files open, however many there are")
    func descriptors() throws {
        let directory = try TemporaryDirectory()
        let path = directory["store"]
        try makeStore(of: 30, at: path)
        let names = try Files.list(path)
        let fileCount = names.count { $0.hasSuffix(".seg") || $0.hasSuffix(".val") }
        try require(fileCount >= 60, "only \(fileCount) files")
        var most = 0
        var isTold = false
        let report = try Store.repair(at: path, to: directory["repaired"]) { _ in
            isTold = true
            most = max(most, openFiles(in: directory))
        }
        #expect(report.isComplete && isTold)
        #expect(most <= 8, "\(most) files were open at once")
    }

    /// A function of its own: a store that is closed, but still there, has its segments open.
    private func makeStore(of count: Int, at path: String) throws {
        let store = try Store.open(at: path, options: apartOptions())
        let dataset = try store.dataset("main")
        var random = SeededGenerator(Seed(3))
        for number in 0..<count {
            try dataset.put(random.bytes(400), for: bytes("key \(number)"))
            try store.sealAll()
        }
        try store.close()
    }

    /// How many descriptors of this process are of files in a directory. Other tests have others.
    private func openFiles(in directory: TemporaryDirectory) -> Int {
        let name = directory.path.split(separator: "/").last ?? ""
        // One that was closed meanwhile has no target.
        return ((try? Files.list("/proc/self/fd")) ?? []).count { number in
            var target = [CChar](repeating: 0, count: 4_096)
            let count = unsafe readlink("/proc/self/fd/\(number)", &target, 4_096)
            let bytes = target.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self).contains("/\(name)/")
        }
    }
}
