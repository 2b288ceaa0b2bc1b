internal import Synchronization

/// An object that is made when it is first asked for and then lives as long as this does; asking
/// for it later takes no lock.
final class LazyReference<Object: AnyObject & Sendable>: Sendable {
    /// The object, retained once, as an address; 0 before anyone needed it.
    private let address = Atomic<UInt>(0)
    private let making = Mutex(())

    deinit {
        unsafe reference?.release()
    }

    /// The object without counting a reference, for those who hold what holds this; nil if it has
    /// not been made.
    @inline(__always)
    var reference: Unmanaged<Object>? {
        let known = address.load(ordering: .acquiring)
        guard let pointer = unsafe UnsafeRawPointer(bitPattern: known) else { return nil }
        return unsafe Unmanaged<Object>.fromOpaque(pointer)
    }

    /// The object, made if it has not been. What making it throws is thrown on, and the next who
    /// asks tries again.
    func object(
        _ make: () throws(StoreError) -> Object
    ) throws(StoreError) -> Object {
        if let known = unsafe reference { return unsafe known.takeUnretainedValue() }
        let result = making.withLock { _ -> Result<Void, StoreError> in
            guard unsafe reference == nil else { return .success(()) }
            do throws(StoreError) {
                let made = try make()
                address.store(
                    UInt(bitPattern: unsafe Unmanaged.passRetained(made).toOpaque()),
                    ordering: .releasing)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
        return unsafe reference!.takeUnretainedValue()
    }
}
