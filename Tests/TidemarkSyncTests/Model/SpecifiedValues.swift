import Specification
import Tidemark

@testable import TidemarkSync

/// What the values of the specification are in the product.
struct SpecifiedValues {
    /// By the numbers of the specification, in the order of the product.
    var ids: [ReplicaID]
    /// The millisecond of the tick 0.
    var start: UInt64

    static let any = SpecifiedValues(
        ids: (1...4).map { ReplicaID(high: $0, low: 0) }, start: 1_700_000_000_000)

    func dot(_ dot: SpecDot) -> Dot { Dot(replica: ids[dot.id], counter: UInt64(dot.counter)) }

    func vector(_ vector: SpecVector) -> VersionVector {
        VersionVector(ids.indices.map { Dot(replica: ids[$0], counter: UInt64(vector[$0])) })
    }

    func time(_ time: SpecTime) -> HybridTime {
        HybridTime(
            milliseconds: start + UInt64(time.tick),
            counter: time.isOutliving ? .max : time.raw & 15)
    }

    func version(_ version: SpecVersion) -> Version {
        Version(
            dot: dot(version.dot), vector: vector(version.vector), time: time(version.time))
    }

    func value(_ record: SpecRecord) -> [UInt8]? {
        record.isDeleted ? nil : Self.value(of: record.write)
    }

    static func value(of write: SpecWriteName) -> [UInt8] {
        Array("\(["a", "b", "c"][write.replica]) \(write.ordinal)".utf8)
    }

    static func key(_ number: Int) -> [UInt8] { Array("key \(number)".utf8) }

    func record(_ record: SpecRecord) -> Record {
        Record(
            key: Self.key(0), value: value(record), version: version(record.version),
            syncCount: 0, isDirty: false)
    }

    func forgotten(_ forgotten: SpecForgotten) -> ForgottenDeletions {
        ForgottenDeletions(vector: vector(forgotten.vector), time: time(forgotten.time))
    }

    func comparison(_ comparison: SpecComparison) -> Comparison {
        switch comparison {
        case .ignore: .ignore
        case .conflict: .conflict
        case .adopt(let record): .adopt(value: value(record), version: version(record.version))
        case .renew(let winner): .renew(record(winner))
        }
    }

    func relation(_ relation: SpecVersion.Relation) -> VersionRelation {
        switch relation {
        case .same: .same
        case .descendant: .descendant
        case .ancestor: .ancestor
        case .concurrent: .concurrent
        }
    }
}
