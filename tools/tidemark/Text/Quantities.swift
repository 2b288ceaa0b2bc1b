/// Numbers as people read them.
enum Quantities {
    /// `1,234,567`
    static func grouped(_ number: some BinaryInteger) -> String {
        var digits = ""
        for (index, digit) in String(number).reversed().enumerated() {
            if index > 0, index % 3 == 0, digit != "-" {
                digits.append(",")
            }
            digits.append(digit)
        }
        return String(digits.reversed())
    }

    /// `3,412 records`, `1 record`
    static func counted(_ number: some BinaryInteger, _ noun: String) -> String {
        counted(number, noun, plural: noun + "s")
    }

    /// `2 losses`, `1 loss`
    static func counted(
        _ number: some BinaryInteger, _ noun: String, plural: String
    ) -> String {
        "\(grouped(number)) \(number == 1 ? noun : plural)"
    }

    /// `1 segment`, `2 segments and 1 value file`
    static func files(_ segmentCount: Int, _ valueFileCount: Int) -> String {
        let segments = counted(segmentCount, "segment")
        return valueFileCount == 0
            ? segments : "\(segments) and \(counted(valueFileCount, "value file"))"
    }

    /// `512 B`, `1.5 KiB`, `32.0 MiB`
    static func bytes(_ number: some BinaryInteger) -> String {
        guard number >= 1_024 else { return "\(number) B" }
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        // Whole tenths of the unit, rounded down, so that nothing is shown larger than it is.
        var unitBytes: UInt64 = 1_024
        var unit = 0
        while unit < units.count - 1, UInt64(clamping: number) / unitBytes >= 1_024 {
            unitBytes *= 1_024
            unit += 1
        }
        let whole = UInt64(clamping: number) / unitBytes
        // No overflow: what is left is below 2^60, and ten times that below 2^64.
        let tenth = UInt64(clamping: number) % unitBytes * 10 / unitBytes
        return "\(whole).\(tenth) \(units[unit])"
    }

    /// `1.25`, `0.60`; `-` for nil and for what no reader would believe
    static func ratio(_ number: Double?) -> String {
        guard let number, number >= 0, number < 1e12 else { return "-" }
        let hundredths = Int((number * 100).rounded())
        let rest = hundredths % 100
        return "\(grouped(hundredths / 100)).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// `0:07`, `12:34`, `1:02:03`
    static func clock(seconds: Int) -> String {
        func padded(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60)
        return hours > 0
            ? "\(hours):\(padded(minutes)):\(padded(seconds % 60))"
            : "\(minutes):\(padded(seconds % 60))"
    }
}
