/// Walks over the records of a moment with a transaction's own writes laid over them.
///
/// Without own writes in the range the records are handed out where they lie. With them, the
/// walk looks one record ahead, and copies it.
struct TransactionSteps {
    /// What is given a record: the time of expiry is in milliseconds since 1970, 0 for never.
    typealias Body<Result> = (
        _ key: ByteView, _ value: ByteView, _ version: () -> Version?, _ expiresAt: UInt64
    ) -> Result

    private struct Ahead {
        let key: [UInt8]
        let value: [UInt8]
        let version: Version
        let expiresAt: UInt64
    }

    private var base: ScanSteps
    private var own: ArraySlice<TransactionWrites.Step>
    private let order: ScanOrder
    private let read: RangeRead
    private let hasOwn: Bool
    /// Whether nobody asks for values: those that lie apart are not read then.
    private let isKeysOnly: Bool
    /// The next record of the moment, looked at and not given out.
    private var ahead: Ahead?
    private var isBaseAtEnd = false

    init(
        _ base: ScanSteps, own: [TransactionWrites.Step], order: ScanOrder, read: RangeRead,
        isKeysOnly: Bool = false
    ) {
        self.base = base
        self.own = own[...]
        self.order = order
        self.read = read
        hasOwn = !own.isEmpty
        self.isKeysOnly = isKeysOnly
    }

    /// Hands the next record to the body; nil at the end. Key and value are valid during the call.
    mutating func next<Result>(
        _ body: Body<Result>
    ) throws(StoreError) -> Result? {
        guard hasOwn else { return try nextOfBase(body) }
        while true {
            try lookAhead()
            guard let write = own.first else {
                guard let found = ahead else {
                    read.isComplete = true
                    return nil
                }
                ahead = nil
                return try give(found.key, found.value, found.version, found.expiresAt, body)
            }
            if let found = ahead {
                if found.key == write.key {
                    ahead = nil
                } else if found.key.lexicographicallyPrecedes(write.key) == (order == .forward) {
                    ahead = nil
                    return try give(found.key, found.value, found.version, found.expiresAt, body)
                }
            }
            own.removeFirst()
            if let value = write.value {
                return try give(write.key, value, nil, write.expiresAt, body)
            }
        }
    }

    private mutating func nextOfBase<Result>(
        _ body: Body<Result>
    ) throws(StoreError) -> Result? {
        let (read, isKeysOnly) = (read, isKeysOnly)
        let result = try base.next { (entry, tables) throws(StoreError) -> Result in
            read.reach(entry.key)
            guard !isKeysOnly else {
                return body(
                    entry.key, .empty, { tables.version(of: entry) }, entry.expiresAt)
            }
            return try tables.withValue(of: entry) { (value) throws(StoreError) in
                body(entry.key, value, { tables.version(of: entry) }, entry.expiresAt)
            }
        }
        if result == nil { read.isComplete = true }
        return result
    }

    private mutating func lookAhead() throws(StoreError) {
        guard ahead == nil, !isBaseAtEnd else { return }
        let isKeysOnly = isKeysOnly
        ahead = try base.next { (entry, tables) throws(StoreError) -> Ahead in
            Ahead(
                key: entry.key.array, value: isKeysOnly ? [] : try tables.value(of: entry),
                version: tables.version(of: entry), expiresAt: entry.expiresAt)
        }
        isBaseAtEnd = ahead == nil
    }

    private func give<Result>(
        _ key: [UInt8], _ value: [UInt8], _ version: Version?, _ expiresAt: UInt64,
        _ body: Body<Result>
    ) throws(StoreError) -> Result {
        try key.withBytes { (key) throws(StoreError) in
            read.reach(key)
            return try value.withBytes { (value) throws(StoreError) in
                body(key, value, { version }, expiresAt)
            }
        }
    }
}
