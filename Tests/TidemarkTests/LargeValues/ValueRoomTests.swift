import Testing

@testable import Tidemark

@Suite("Room in which values are decompressed")
struct ValueRoomTests {
    private func place(of room: ValueRoom, byteCount: Int) throws -> UInt {
        try unsafe room.with(byteCount: byteCount) { (memory) throws(StoreError) in
            let count = memory.count
            #expect(count == byteCount)
            return UInt(bitPattern: memory.baseAddress)
        }
    }

    @Test("One value after the other has the same memory")
    func kept() throws {
        let room = ValueRoom()
        #expect(room.bytesKept == 0)
        let first = try place(of: room, byteCount: 1 << 20)
        #expect(room.bytesKept == 1 << 20)
        let second = try place(of: room, byteCount: 1 << 20)
        let third = try place(of: room, byteCount: 3000)
        #expect(second == first)
        #expect(third == first)
        #expect(room.bytesKept == 1 << 20)
    }

    @Test("Looks at the same time have memory of their own, of which the larger piece is kept")
    func nested() throws {
        let room = ValueRoom()
        try unsafe room.with(byteCount: 200_000) { (outer) throws(StoreError) in
            _ = unsafe outer.initializeMemory(as: UInt8.self, repeating: 7)
            try unsafe room.with(byteCount: 900_000) { (inner) throws(StoreError) in
                _ = unsafe inner.initializeMemory(as: UInt8.self, repeating: 9)
            }
            let isUntouched = unsafe outer.allSatisfy { $0 == 7 }
            #expect(isUntouched)
        }
        #expect(room.bytesKept >= 900_000)
    }

    @Test("What is larger than the bound goes back at once")
    func bound() throws {
        let room = ValueRoom()
        _ = try place(of: room, byteCount: ValueRoom.bytesKeptMax + 1)
        #expect(room.bytesKept == 0)
        _ = try place(of: room, byteCount: ValueRoom.bytesKeptMax)
        #expect(room.bytesKept == ValueRoom.bytesKeptMax)
    }

    @Test("A look that fails gives its memory back")
    func failure() throws {
        let room = ValueRoom()
        #expect(throws: StoreError.self) {
            try unsafe room.with(byteCount: 1 << 20) { (_) throws(StoreError) -> Void in
                throw Malformed("anything").error(in: "file", at: nil)
            }
        }
        #expect(room.bytesKept == 1 << 20)
    }
}
