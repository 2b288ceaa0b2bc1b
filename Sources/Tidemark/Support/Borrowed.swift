extension Unmanaged {
    /// Hands out the object without counting a reference: threads that count references to the same
    /// object wait for each other's caches. Whoever calls must know that something else holds the
    /// object for the duration of the call.
    @inline(__always)
    func withBorrowed<Result>(
        _ body: (Instance) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        var result: Result?
        var failure: StoreError?
        unsafe _withUnsafeGuaranteedRef { instance in
            do throws(StoreError) {
                result = try body(instance)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return result!
    }
}
