import Testing

@testable import tidemark

@Suite struct QuantitiesTests {
    @Test func ratiosHaveTwoPlaces() {
        let expected: [(Double?, String)] = [
            (0, "0.00"), (0.6, "0.60"), (0.999, "1.00"), (1.25, "1.25"), (12.07, "12.07"),
            (1_234.5, "1,234.50"), (nil, "-"), (-1, "-"), (.infinity, "-"), (.nan, "-"),
            (1e300, "-"),
        ]
        for (number, text) in expected {
            #expect(Quantities.ratio(number) == text)
        }
    }

    @Test func ratiosInObjects() {
        let expected: [(Double?, String)] = [
            (0, "0.000"), (0.0625, "0.063"), (1.5, "1.500"), (1_234.5, "1234.500"),
            (nil, "null"), (.nan, "null"), (.infinity, "null"),
        ]
        for (number, text) in expected {
            var line = JSONLine()
            line.add("ratio", ratio: number)
            #expect(String(decoding: line.line, as: UTF8.self) == "{\"ratio\":\(text)}\n")
        }
    }

    @Test func pluralsThatTakeMoreThanALetter() {
        #expect(Quantities.counted(1, "loss", plural: "losses") == "1 loss")
        #expect(Quantities.counted(1_200, "loss", plural: "losses") == "1,200 losses")
    }
}
