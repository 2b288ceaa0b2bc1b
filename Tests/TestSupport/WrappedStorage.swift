package import Tidemark

/// A disk that does what another does, but for what it says otherwise.
package protocol WrappedStorage: Storage {
    associatedtype Base: Storage
    var base: Base { get }
}

extension WrappedStorage {
    package func createDirectory(_ path: String) throws(StoreError) {
        try base.createDirectory(path)
    }

    package func listDirectory(_ path: String) throws(StoreError) -> [String] {
        try base.listDirectory(path)
    }

    package func openFile(
        _ path: String, _ mode: FileMode
    ) throws(StoreError) -> any StorageFile {
        try base.openFile(path, mode)
    }

    package func rename(_ source: String, to target: String) throws(StoreError) {
        try base.rename(source, to: target)
    }

    package func link(_ source: String, to target: String) throws(StoreError) -> Bool {
        try base.link(source, to: target)
    }

    package func remove(_ path: String) throws(StoreError) { try base.remove(path) }

    package func syncDirectory(_ path: String) throws(StoreError) { try base.syncDirectory(path) }

    package func lock(_ directory: String) throws(StoreError) -> any StorageLock {
        try base.lock(directory)
    }

    package func randomUInt64() -> UInt64 { base.randomUInt64() }
}
