import Glibc
import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// How a directory that was made under another name comes to where it belongs, step by step.
struct PublicationTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func make(_ path: String, _ files: String...) throws -> String {
        try Files.createDirectory(path)
        for file in files { try Files.write([1], to: "\(path)/\(file)") }
        return path
    }

    /// Property: at no moment is the name of the store free.
    ///
    ///     made     .---> kept ---.            the damaged store
    ///     store  damaged         '---> whole, in one step
    @Test func aStoreIsExchangedInOneStep() throws {
        let store = try make(directory["s"], "old")
        let made = try make(directory["s.partial-1"], "new")
        let kept = directory["s.damaged"]
        let watch = NameWatch(store)
        let changed = try Publication.exchanges(keeping: kept).place(
            made, at: store, SystemStorage(faults: watch))
        #expect(changed == directory.path)
        #expect(!watch.wasFree && watch.renames == 2)
        #expect(try Files.list(directory.path) == ["s", "s.damaged"])
        #expect(try Files.list(store) == ["new"] && Files.list(kept) == ["old"])
    }

    @Test(arguments: [EINVAL, ENOSYS, EOPNOTSUPP])
    func whereNamesCannotBeExchangedTheyAreChangedInTurn(number: Int32) throws {
        let store = try make(directory["s"], "old")
        let made = try make(directory["s.partial-1"], "new")
        let kept = directory["s.damaged"]
        let watch = NameWatch(store, refusing: 2, with: number)
        _ = try Publication.exchanges(keeping: kept).place(
            made, at: store, SystemStorage(faults: watch))
        #expect(try Files.list(directory.path) == ["s", "s.damaged"])
        #expect(try Files.list(store) == ["new"] && Files.list(kept) == ["old"])
        #expect(watch.wasFree)
    }

    @Test(arguments: [1, 2], [EIO, EBUSY])
    func anExchangeThatFailsChangesNothing(step: Int, number: Int32) throws {
        let store = try make(directory["s"], "old")
        let made = try make(directory["s.partial-1"], "new")
        let watch = NameWatch(store, refusing: step, with: number)
        #expect(throws: (any Error).self) {
            try Publication.exchanges(keeping: directory["s.damaged"]).place(
                made, at: store, SystemStorage(faults: watch))
        }
        #expect(try Files.list(directory.path) == ["s", "s.partial-1"])
        #expect(try Files.list(store) == ["old"] && Files.list(made) == ["new"])
        #expect(!watch.wasFree)
    }

    @Test func aDirectoryIsFilledWithTheManifestLast() throws {
        for step in 1...4 {
            let target = try make(directory["t\(step)"])
            let made = try make("\(target)/.partial", "a", "b", "MANIFEST")
            let isComplete = step == 4
            let watch = NameWatch("\(target)/MANIFEST", refusing: step, with: EIO)
            do {
                let changed = try Publication.fills.place(
                    made, at: target, SystemStorage(faults: watch))
                #expect(isComplete && changed == target)
                #expect(try Files.list(target) == ["MANIFEST", "a", "b"])
            } catch {
                #expect(!isComplete, "\(error)")
                #expect(try Files.list(target) == [".partial"])
            }
            // It was there before none of the calls, so the last of them put it there.
            #expect(watch.wasAlwaysFree)
        }
    }

    @Test func aMountPointKeepsItsName() {
        for path in ["/", "/proc", "/proc/"] {
            #expect(throws: CommandFailure.self) { try Publication.exchangeableName(of: path) }
        }
    }
}

/// Looks before each call whether a name is free, and refuses one of the renames.
private final class NameWatch: SystemCallFaults {
    private struct State {
        var renames = 0
        var callCount = 0
        var freeCount = 0
    }

    private let path: String
    private let refused: Int
    private let number: Int32
    private let state = Mutex(State())

    init(_ path: String, refusing refused: Int = 0, with number: Int32 = 0) {
        self.path = path
        self.refused = refused
        self.number = number
    }

    var renames: Int { state.withLock { $0.renames } }
    var wasFree: Bool { state.withLock { $0.freeCount > 0 } }
    var wasAlwaysFree: Bool { state.withLock { $0.freeCount == $0.callCount } }

    func failure(of call: SystemCall, path: String) -> Int32 {
        let isFree = !Files.exists(self.path)
        return state.withLock { state -> Int32 in
            state.callCount += 1
            if isFree { state.freeCount += 1 }
            guard call == .rename else { return 0 }
            state.renames += 1
            return state.renames == refused ? number : 0
        }
    }

    func count(of call: SystemCall, path: String, wanted: Int) -> Int { wanted }
}
