import TestSupport
import Testing

@testable import Tidemark

@Suite("Numbers of datasets")
struct DatasetNumbersTests {
    @Test("No number is given out twice, whatever is drawn, taken, given back and found")
    func model() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<50 {
                var numbers = DatasetNumbers(next: DatasetID(1 + random.below(5)))
                var used = Set<DatasetID>(1..<numbers.next)
                for _ in 0..<300 {
                    let any = DatasetID(1 + random.below(Int(numbers.next) + 20))
                    switch random.below(4) {
                    case 0:
                        guard let drawn = numbers.draw() else { throw Mismatch("none is left") }
                        try require(used.insert(drawn).inserted, "\(drawn) was drawn twice")
                    case 1:
                        guard numbers.isFree(any) else {
                            try require(used.contains(any), "\(any) is free and not to be had")
                            continue
                        }
                        numbers.take(any)
                        try require(used.insert(any).inserted, "\(any) was taken twice")
                        try require(!numbers.isFree(any), "\(any) is free and was taken")
                    case 2:
                        guard let given = used.randomElement(using: &random) else { continue }
                        numbers.giveBack(given)
                        if numbers.isFree(given) { used.remove(given) }
                    default:
                        // What lies before it and is not used is not known to be free.
                        let isPassedOver = any >= numbers.next
                        if isPassedOver { used.formUnion(numbers.next...any) }
                        numbers.noteUsed(any)
                    }
                    numbers.checkInvariants()
                }
            }
        }
    }

    @Test("At the end of all numbers none is drawn, nor is any of the store's own")
    func exhausted() {
        var numbers = DatasetNumbers(next: DatasetNumbers.last)
        let (last, none) = (numbers.draw(), numbers.draw())
        #expect(last == DatasetNumbers.last && none == nil)
        numbers.noteUsed(DatasetID.max)
        #expect(!numbers.isFree(1) && !numbers.isFree(DatasetNumbers.last + 1))
        numbers.checkInvariants()
    }

    @Test("A number that is given up stays taken until that is durable")
    func retiring() {
        var numbers = DatasetNumbers(next: 3)
        numbers.retire(2)
        #expect(numbers.isRetiring(2) && !numbers.isRetiring(1) && !numbers.isFree(2))
        numbers.noteDurable(2)
        #expect(!numbers.isRetiring(2))
    }
}
