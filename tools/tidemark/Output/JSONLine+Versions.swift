import Tidemark

extension JSONLine {
    /// What was seen: for each replica its last write.
    mutating func add(_ name: String, seen vector: VersionVector) {
        var object = JSONLine()
        for dot in vector.dots { object.add(dot.replica.description, dot.counter) }
        add(name, object)
    }

    /// A write by its replica's whole id.
    mutating func add(_ name: String, write dot: Dot) {
        var object = JSONLine()
        object.add("replica", dot.replica.description)
        object.add("counter", dot.counter)
        add(name, object)
    }

    /// A time as a date that anyone can parse; the counter within the millisecond is left out.
    mutating func add(_ name: String, date time: HybridTime) {
        add(name, HybridTime(milliseconds: time.milliseconds, counter: 0).description)
    }
}
