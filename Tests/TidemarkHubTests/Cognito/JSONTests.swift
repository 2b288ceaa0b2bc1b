import Foundation
import TestSupport
import Testing

@testable import TidemarkHub

/// What the API reads and writes, against another reader and writer of JSON.
struct JSONTests {
    private struct Text: Codable, Equatable {
        let text: String
    }

    @Test("any text is written so that others read the same")
    func texts() throws {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<300 {
            var text = ""
            for _ in 0..<generator.below(20) {
                let value = UInt32(generator.below(generator.oneIn(2) ? 0x80 : 0x11_0000))
                if let scalar = Unicode.Scalar(value) { text.unicodeScalars.append(scalar) }
            }
            var answer = JSONAnswer()
            answer.open("{")
            answer.add("text", utf8: Array(text.utf8))
            answer.close("}")
            let read = try JSONDecoder().decode(Text.self, from: Data(answer.bytes))
            #expect(Array(read.text.utf8) == Array(text.utf8))
        }
    }

    @Test("members and elements are parted by commas, and nothing else is")
    func commas() {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "a")
        answer.add(text: "x")
        answer.open("{")
        answer.add("n", 1)
        answer.add("f", true)
        answer.close("}")
        answer.close("]")
        answer.open("[", as: "b")
        answer.close("]")
        answer.add("d", APIDate(clampingMilliseconds: Int64(1_500)))
        answer.close("}")
        let text = String(decoding: answer.bytes, as: UTF8.self)
        #expect(text == #"{"a":["x",{"n":1,"f":true}],"b":[],"d":1.5}"#)
    }

    @Test(
        "dates are seconds with milliseconds behind the point",
        arguments: [
            (0, "0"), (1, "0.001"), (10, "0.01"), (100, "0.1"), (999, "0.999"), (1_000, "1"),
            (1_795_232_542_665, "1795232542.665"), (-1, "0"), (Int64.max, "253402300799.999"),
        ] as [(Int64, String)])
    func dates(milliseconds: Int64, text: String) {
        #expect(APIDate(clampingMilliseconds: milliseconds).text == text)
    }

    @Test("dates that clients send are kept to the millisecond, and others are refused")
    func sentDates() {
        #expect(APIDate(seconds: 1_795_232_542.665)?.milliseconds == 1_795_232_542_665)
        #expect(APIDate(seconds: 0)?.milliseconds == 0)
        #expect(APIDate(seconds: -1) == nil)
        #expect(APIDate(seconds: .nan) == nil)
        #expect(APIDate(seconds: .infinity) == nil)
        #expect(APIDate(seconds: 253_402_300_800) == nil)
    }

    @Test("a body nested too deep is refused before it is parsed; brackets in texts count not")
    func depth() throws {
        let deep = String(repeating: "[", count: 17)
        #expect(throws: APIFailure.self) { try JSONBounds.check(Array(deep.utf8)) }
        try JSONBounds.check(Array(deep.dropFirst().utf8))
        try JSONBounds.check(Array("\"\\\"\(deep)\\\\\"".utf8))
        #expect(throws: APIFailure.self) { try JSONBounds.check(Array("\"\\\\\"\(deep)".utf8)) }
    }

    @Test(
        "bodies that are no such JSON are refused, and the member at fault is named",
        arguments: [
            ("[]", ""), ("{", ""), ("nul", ""), ("\u{0}", "zero"),
            (#"{"RecordPatches":{}}"#, "RecordPatches"),
            (#"{"RecordPatches":[{"Key":"a"},{"Key":1}]}"#, "RecordPatches[1].Key"),
            (#"{"RecordPatches":[{"SyncCount":1.5}]}"#, "number"),
            (#"{"RecordPatches":[{"Value":"\ud800"}]}"#, ""),
            (#"{"SyncSessionToken":7}"#, "SyncSessionToken"),
        ])
    func refused(body: String, member: String) {
        let error = #expect(throws: APIFailure.self) {
            try APICoding.decode(UpdateRecordsBody.self, from: Array(body.utf8))
        }
        #expect(error?.kind == .serialization)
        #expect(error?.message.contains(member) ?? false || member.isEmpty)
    }

    @Test("what is no UTF-8 is refused")
    func encodings() {
        for bytes: [UInt8] in [[0xFF, 0xFE], [0x7B, 0x22, 0xC0, 0x22, 0x7D], [0x7B, 0, 0x7D, 0]] {
            let error = #expect(throws: APIFailure.self) {
                try APICoding.decode(UpdateRecordsBody.self, from: bytes)
            }
            #expect(error?.kind == .serialization)
        }
    }

    @Test("an empty body is an object without members, and unknown members are passed over")
    func lenient() throws {
        let empty = try APICoding.decode(UpdateRecordsBody.self, from: [])
        #expect(empty.syncSessionToken == nil && empty.recordPatches == nil)
        let body = #"{"SyncSessionToken":"t","Other":[{}],"DeviceId":null}"#
        let read = try APICoding.decode(UpdateRecordsBody.self, from: Array(body.utf8))
        #expect(read.syncSessionToken == "t" && read.deviceID == nil)
    }
}
