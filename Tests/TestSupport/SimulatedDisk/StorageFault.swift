import Glibc
import Tidemark

/// One call that the store made of its storage.
package struct StorageCall: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case createDirectory, listDirectory, openFile, rename, link, remove, syncDirectory, lock
        case size, read, write, sync, truncate, map, syncMapping

        /// Whether such a call may leave the disk, live or durable, different.
        package var changesDisk: Bool {
            switch self {
            case .listDirectory, .lock, .size, .read: false
            default: true
            }
        }

        /// Whether such a call can have its whole effect and fail all the same: one that gives
        /// nothing that its caller would need.
        var canFailLate: Bool {
            switch self {
            case .createDirectory, .rename, .link, .remove, .syncDirectory: true
            case .write, .sync, .truncate, .syncMapping: true
            case .listDirectory, .openFile, .lock, .size, .read, .map: false
            }
        }
    }

    /// 1 for the first call of any kind.
    package let number: Int
    package let kind: Kind
    package let path: String
    package let offset: UInt64
    package let count: Int

    package var description: String {
        "#\(number) \(kind.rawValue) \(path) at \(offset), \(count) bytes"
    }

    static func failure(
        _ kind: Kind, _ path: String, _ number: Int32, at offset: UInt64? = nil
    ) -> StoreError {
        let code: StoreError.Code =
            switch number {
            case ENOSPC: .diskFull
            case ENOENT, ENOTDIR: .notAStore
            default: .inputOutput
            }
        let error = StoreError(
            code, "simulated failure of \(kind.rawValue), errno \(number)",
            location: StoreError.Location(path: path, offset: offset), systemError: number)
        return kind == .read ? error.ofReading() : error
    }
}

/// A failure to come.
package struct StorageFault: Hashable, Sendable {
    package enum Failure: Hashable, Sendable, CaseIterable {
        case inputOutput
        case diskFull
        /// A signal came, and the call gave up.
        case interrupted
        /// Half of a write arrives before the disk is full; other calls fail as `inputOutput`.
        case short
        /// The call does all that it should and then says that it failed, like one over a network
        /// whose answer is lost; calls that give something fail as `inputOutput`.
        case late

        func error(of call: StorageCall) -> StoreError {
            let isFull = self == .diskFull || (self == .short && call.kind == .write)
            return StorageCall.failure(
                call.kind, call.path, isFull ? ENOSPC : self == .interrupted ? EINTR : EIO)
        }
    }

    /// The calls that count; all kinds if empty.
    package var kinds: Set<StorageCall.Kind>
    /// How many of these calls succeed before the first that fails.
    package var passes: Int
    package var failure: Failure
    /// Whether all of these calls fail from then on, rather than one.
    package var isLasting: Bool

    package init(
        _ failure: Failure, of kinds: Set<StorageCall.Kind> = [], after passes: Int = 0,
        isLasting: Bool = false
    ) {
        self.failure = failure
        self.kinds = kinds
        self.passes = passes
        self.isLasting = isLasting
    }
}

extension SimulatedStorage.State {
    /// The failure of this call, if a fault is due; spends it.
    mutating func failure(of call: StorageCall) -> StorageFault.Failure? {
        for index in faults.indices
        where faults[index].kinds.isEmpty || faults[index].kinds.contains(call.kind) {
            if faults[index].passes > 0 {
                faults[index].passes -= 1
                continue
            }
            let fault = faults[index]
            if !fault.isLasting { faults.remove(at: index) }
            return fault.failure
        }
        return nil
    }

    /// Throws `diskFull` if the file cannot have that size.
    func reserve(
        _ size: Int, for inode: SimulatedInode, _ kind: StorageCall.Kind, _ path: String
    ) throws(StoreError) {
        guard let capacityBytes, size > inode.size else { return }
        if image.fileBytes + size - inode.size > capacityBytes {
            throw StorageCall.failure(kind, path, ENOSPC)
        }
    }

    mutating func writeBackByChance() {
        guard writebackOneIn > 0, random.oneIn(writebackOneIn) else { return }
        for path in image.files.keys.sorted() {
            image.files[path]?.writeBackSomePages(using: &random)
        }
    }
}
