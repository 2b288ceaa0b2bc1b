extension Unmanaged {
    /// Hands out the object without counting a reference: threads that count references to the same
    /// object wait for each other's caches. Whoever calls must know that something else holds the
    /// object for the duration of the call.
    @inline(__always)
    func withBorrowed<Result>(
        _ body: (Instance) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let result: Swift.Result<Result, StoreError> = unsafe _withUnsafeGuaranteedRef {
            instance in
            do throws(StoreError) {
                return .success(try body(instance))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
