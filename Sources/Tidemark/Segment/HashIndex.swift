internal import CTidemark

/// Finds the newest entry of a key in a sealed segment by one cache line: a hash table of buckets
/// of 64 bytes, mapped from the file as it lies there.
///
///     20 bytes: 2 bytes each: the lower bits of the hashes of up to ten keys
///     1 byte:   number of keys
///     1 byte:   1 if a key that belongs here went on to the next bucket
///     2 bytes:  0
///     40 bytes: 4 bytes each: the place of each key's newest entry
///
/// The bucket of a key is its hash times the number of buckets, divided by 2^64. With eight keys a
/// bucket on average one key in about seven overflows, and of the keys that are not in a segment
/// about one in 8,000 costs a look at an entry: so this serves as the filter, too.
enum HashIndex {
    static let bucketByteCount = 64
    static let keysPerBucket = 10
    private static let keysPerBucketWanted = 8
    /// What is checked at once against one checksum.
    static let bucketsPerChunk = 1_024

    fileprivate static let countOffset = 20
    fileprivate static let overflowOffset = 21
    fileprivate static let placesOffset = 24

    @inline(__always)
    static func bucket(of hash: UInt64, count: Int) -> Int {
        Int(hash.multipliedFullWidth(by: UInt64(count)).high)
    }

    static func bucketCount(keys: Int) -> Int {
        (keys + keysPerBucketWanted - 1) / keysPerBucketWanted + 1
    }

    /// Buckets are fetched from memory so many keys before they are needed.
    private static let fetchedAhead = 16

    /// All buckets, for the keys with the given hashes and the places of their newest entries.
    static func build(
        hashes: PageArray<UInt64>, places: PageArray<UInt32>
    ) -> PageArray<UInt8> {
        let count = bucketCount(keys: hashes.count)
        let buckets = PageArray<UInt8>(capacity: count * bucketByteCount)
        buckets.resize(to: count * bucketByteCount)
        let base = unsafe UnsafeMutableRawPointer(buckets.elements.baseAddress!)
        for index in 0..<hashes.count {
            if index + fetchedAhead < hashes.count {
                let next = bucket(of: hashes[index + fetchedAhead], count: count)
                unsafe tidemark_prefetch(base + next * bucketByteCount)
            }
            let hash = hashes[index]
            let place = EntryPlace(rawValue: places[index])
            var number = bucket(of: hash, count: count)
            while unsafe !insert(hash, place, base + number * bucketByteCount) {
                number = number + 1 < count ? number + 1 : 0
            }
        }
        return buckets
    }

    /// False, and a mark, if the bucket is full.
    private static func insert(
        _ hash: UInt64, _ place: EntryPlace, _ bucket: UnsafeMutableRawPointer
    ) -> Bool {
        let used = unsafe Int(bucket.load(fromByteOffset: countOffset, as: UInt8.self))
        guard used < keysPerBucket else {
            unsafe bucket.storeBytes(of: 1, toByteOffset: overflowOffset, as: UInt8.self)
            return false
        }
        unsafe bucket.storeBytes(
            of: UInt16(truncatingIfNeeded: hash).littleEndian, toByteOffset: 2 * used,
            as: UInt16.self)
        unsafe bucket.storeBytes(
            of: place.rawValue.littleEndian, toByteOffset: placesOffset + 4 * used,
            as: UInt32.self)
        unsafe bucket.storeBytes(of: UInt8(used + 1), toByteOffset: countOffset, as: UInt8.self)
        return true
    }

    /// XXH3-64 of each chunk.
    static func checksums(of buckets: PageArray<UInt8>) -> [UInt64] {
        let chunkBytes = bucketsPerChunk * bucketByteCount
        return stride(from: 0, to: buckets.count, by: chunkBytes).map { start in
            let end = min(start + chunkBytes, buckets.count)
            return unsafe checksum64(
                UnsafeRawBufferPointer(rebasing: buckets.bytes[start..<end]))
        }
    }
}

/// One bucket, for readers.
@safe
struct HashBucket {
    private let base: UnsafeRawPointer
    private let tag: UInt16
    private var next = 0
    let count: Int

    @inline(__always)
    init(at base: UnsafeRawPointer, hash: UInt64) {
        unsafe self.base = base
        tag = UInt16(truncatingIfNeeded: hash)
        count = unsafe min(
            Int(base.load(fromByteOffset: HashIndex.countOffset, as: UInt8.self)),
            HashIndex.keysPerBucket)
    }

    /// Where the key may be; nil when there is no further place in this bucket.
    @inline(__always)
    mutating func nextPlace() -> EntryPlace? {
        while next < count {
            let slot = next
            next += 1
            if unsafe UInt16(
                littleEndian: base.load(fromByteOffset: 2 * slot, as: UInt16.self)) == tag
            {
                return unsafe EntryPlace(
                    rawValue: UInt32(
                        littleEndian: base.load(
                            fromByteOffset: HashIndex.placesOffset + 4 * slot, as: UInt32.self)))
            }
        }
        return nil
    }

    /// The place in a slot.
    ///
    /// - Parameter slot: below `count`.
    func place(at slot: Int) -> EntryPlace {
        unsafe EntryPlace(
            rawValue: UInt32(
                littleEndian: base.load(
                    fromByteOffset: HashIndex.placesOffset + 4 * slot, as: UInt32.self)))
    }

    var isOverflown: Bool {
        unsafe base.load(fromByteOffset: HashIndex.overflowOffset, as: UInt8.self) != 0
    }
}
