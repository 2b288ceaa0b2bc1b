import Testing

@testable import Tidemark

@Suite("When records expire, and sweeps rest")
struct ExpiryScheduleTests {
    @Test("What is noted during a walk counts beside what the walk finds")
    func walk() {
        var schedule = ExpirySchedule(first: 50)
        schedule.beginWalk()
        let isEarlier = schedule.note(70)
        #expect(!isEarlier && schedule.first == 50)
        schedule.endWalk(found: 90)
        #expect(schedule.first == 70)
        schedule.beginWalk()
        schedule.endWalk(found: .max)
        #expect(schedule.first == .max && schedule.pause(at: 0) == nil)
    }

    @Test("A walk that is broken off moves nothing")
    func brokenOff() {
        var schedule = ExpirySchedule(first: 50)
        schedule.beginWalk()
        schedule.endWalk(found: nil)
        #expect(schedule.first == 50)
        let isEarlier = schedule.note(40)
        #expect(isEarlier && schedule.hasExpired(at: 40) && !schedule.hasExpired(at: 39))
    }

    @Test("A sweep of a second is followed by nine of rest, one of no time by one")
    func rests() {
        var schedule = ExpirySchedule(first: 1)
        schedule.rest(afterSweepFrom: 10_000, to: 11_000)
        #expect(!schedule.isDue(at: 19_999) && schedule.isDue(at: 20_000))
        schedule.rest(afterSweepFrom: 10_000, to: 10_000)
        #expect(!schedule.isDue(at: 10_999) && schedule.isDue(at: 11_000))
        #expect(schedule.pause(at: 10_000) == 1_000 && schedule.pause(at: 12_000) == 1)
        schedule.restForGood()
        #expect(!schedule.isDue(at: .max - 1) && schedule.hasExpired(at: 1))
    }

    @Test("A clock that is set during a sweep makes no endless rest", arguments: [0, UInt64.max])
    func clocks(end: UInt64) {
        var schedule = ExpirySchedule(first: 1)
        schedule.rest(afterSweepFrom: 5_000, to: end)
        if end == 0 { #expect(schedule.isDue(at: 1_000)) }
        #expect(schedule.hasExpired(at: 1))
    }
}
