import TestSupport
import Testing
import Tidemark

@Suite("Numbers at their end")
struct ForgedNumbersTests {
    /// The manifest may say so by damage, by malice, or two billion datasets later.
    @Test("A store without a number for another dataset says so, and goes on with those it has")
    func datasetNumbers() throws {
        let storage = SimulatedStorage(seed: Seed(8))
        let options = StoreOptions(segmentBytes: 1 << 20, compactsAutomatically: false)
        let made = try openSimulated(storage, options)
        try made.dataset("main").put("1", for: "a")
        try made.compact()
        try made.close()

        let path = "\(simulatedPath)/MANIFEST"
        var file = try #require(storage.contents(of: path))
        // Behind the headers and the id: no former id, oldest log, next number, next dataset.
        let place = 80 + 24 + 16 + 3
        #expect(file[place] == 2, "one dataset was made")
        file.replaceSubrange(place...place, with: [0xFD, 0xF7, 0xFF, 0xFF, 0x07])
        storage.setContents(of: path, to: mended(file))

        let store = try openSimulated(storage, options)
        try store.dataset("last").put("1", for: "a")
        try store.compact()
        expectError(.invalidArgument) { try store.dataset("another") }
        try store.dataset("main").put("2", for: "a")
        #expect(try store.deleteDataset("main"))
        expectError(.invalidArgument) { try store.dataset("main") }
        try store.close()
        let again = try openSimulated(storage, options)
        #expect(try again.datasetNames() == ["last"])
        #expect(try again.dataset("last").text("a") == "1")
        expectError(.invalidArgument) { try again.dataset("another") }
        try again.close()
    }

    /// A manifest whose one block was changed, with its lengths and checksum as they must be.
    private func mended(_ file: [UInt8]) -> [UInt8] {
        var file = file
        let count = UInt32(file.count - 80 - 24)
        for place in [88, 92] {
            for index in 0..<4 {
                file[place + index] = UInt8(truncatingIfNeeded: count >> UInt32(8 * index))
            }
        }
        let checksum = unsafe Array(file[88...]).withUnsafeBytes {
            unsafe storeChecksum64($0, inFile: file)
        }
        for index in 0..<8 {
            file[80 + index] = UInt8(truncatingIfNeeded: checksum >> UInt64(8 * index))
        }
        return file
    }
}
