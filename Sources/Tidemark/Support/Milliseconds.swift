extension Duration {
    /// Whole milliseconds, rounded down; 0 if it is negative, the greatest number if it is longer.
    package var millisecondsClamped: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000)
        let (sum, carries) = product.addingReportingOverflow(
            UInt64(attoseconds / 1_000_000_000_000_000))
        return overflow || carries ? .max : sum
    }
}
