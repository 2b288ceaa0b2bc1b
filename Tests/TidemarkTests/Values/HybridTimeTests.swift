import TestSupport
import Testing
import Tidemark

@Suite("Hybrid times")
struct HybridTimeTests {
    @Test("Milliseconds and counter come back, and order as numbers do")
    func parts() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<500 {
                let milliseconds = random.next() >> 16
                let counter = UInt16(truncatingIfNeeded: random.next())
                let time = HybridTime(milliseconds: milliseconds, counter: counter)
                try require(time.milliseconds == milliseconds, "\(milliseconds)")
                try require(time.counter == counter, "\(counter)")
                let next = HybridTime(rawValue: time.rawValue &+ 1)
                if next.rawValue != 0 { try require(time < next, "\(time)") }
            }
        }
        #expect(
            HybridTime(milliseconds: 1, counter: .max) < HybridTime(milliseconds: 2, counter: 0))
        #expect(HybridTime.zero < HybridTime(milliseconds: 0, counter: 1))
    }

    @Test(
        "Known moments read as their dates",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (1_000_000_000_000, "2001-09-09T01:46:40.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (4_107_456_000_000, "2100-02-28T00:00:00.000Z"),
        ] as [(UInt64, String)])
    func dates(milliseconds: UInt64, text: String) {
        #expect(HybridTime(milliseconds: milliseconds, counter: 0).description == text)
        #expect(HybridTime(milliseconds: milliseconds, counter: 3).description == text + "+3")
    }

    @Test("Every day until the year 2200 follows the one before")
    func calendar() {
        var (year, month, day) = (1970, 1, 1)
        for index in 0..<84_006 {
            let time = HybridTime(milliseconds: UInt64(index) * 86_400_000, counter: 0)
            let expected = "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)"
            guard time.description == expected + "T00:00:00.000Z" else {
                Issue.record("day \(index) is \(time), not \(expected)")
                return
            }
            day += 1
            if day > dayCount(of: month, year) { (month, day) = (month + 1, 1) }
            if month > 12 { (year, month) = (year + 1, 1) }
        }
        #expect(year == 2200)
    }

    @Test("The largest time still has a description")
    func largest() {
        #expect(HybridTime(rawValue: .max).description.hasPrefix("10889-08-02T05:31:50.655Z"))
    }

    private func dayCount(of month: Int, _ year: Int) -> Int {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    }
}
