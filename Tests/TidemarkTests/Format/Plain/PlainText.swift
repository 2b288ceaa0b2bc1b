/// What a plain reader found, in the lines that ``StoreText`` has for what the engine finds.
enum PlainText {
    /// The numbers that are kept for the store's own datasets, from the article's table.
    private static let ownNumbers: ClosedRange<UInt64> = 0x7FFF_FBFE...0x7FFF_FFFD

    static func of(_ store: PlainStore) -> String {
        var lines = ["store \(store.id.text)"]
        for id in store.formerIDs { lines.append("  formerly \(id.text)") }
        for (name, state) in store.states.sorted(by: { $0.key < $1.key })
        where !name.hasPrefix("~") {
            add(name, state, store.versions[state.number] ?? [:], to: &lines)
        }
        for (name, state) in store.states.sorted(by: { $0.value.number < $1.value.number })
        where name.hasPrefix("~") && ownNumbers.contains(state.number) {
            lines.append("own \(name.dropFirst())")
            for (key, versions) in sorted(store.versions[state.number] ?? [:]) {
                guard let value = versions[0].value else { continue }
                lines.append("  \(text(key)): \(text(value))")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func sorted(
        _ versions: [[UInt8]: [PlainEntry]]
    ) -> [(key: [UInt8], value: [PlainEntry])] {
        versions.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    private static func add(
        _ name: String, _ state: PlainState, _ versions: [[UInt8]: [PlainEntry]],
        to lines: inout [String]
    ) {
        lines.append("dataset \(name)\(state.isDeleted ? " (deleted)" : "")")
        lines.append("  count \(state.syncCount), seen \(text(state.vector))")
        lines.append("  since \(text(time: state.lifecycleTime)), wiped \(text(state.wiped))")
        if !state.forgotten.isEmpty {
            lines.append(
                "  forgotten \(text(state.forgotten)) until \(text(time: state.forgottenTime))")
        }
        for id in state.retired.sorted() { lines.append("  retired \(id.text)") }
        for id in state.vector.ids {
            guard let peer = state.peers[id], peer != PlainState.Peer() else { continue }
            lines.append(
                "  peer \(id.text): pulled \(peer.pulledThrough), pushed "
                    + "\(peer.pushedThrough), has \(text(peer.vector))")
        }
        guard state.isVisible else { return }
        for (key, versions) in sorted(versions) where !versions[0].isMark {
            lines.append("  \(text(key))")
            for version in versions { lines.append("    " + text(version)) }
        }
    }

    private static func text(_ version: PlainEntry) -> String {
        var words = [version.value.map { text($0) } ?? "deleted"]
        words.append("count \(version.syncCount)")
        words.append("dot \(version.replica.text):\(version.counter)")
        words.append("at \(text(time: version.time))")
        if !version.author.isEmpty { words.append("by \(version.author)") }
        if version.expiry > 0 { words.append("expires \(text(time: version.expiry << 16))") }
        words.append("seen \(text(version.seen))")
        return words.joined(separator: ", ")
    }

    private static func text(_ vector: PlainVector) -> String {
        let dots = vector.ids.map { "\($0.text):\(vector[$0])" }
        return dots.isEmpty ? "nothing" : dots.joined(separator: " ")
    }

    private static func text(_ bytes: [UInt8]) -> String {
        guard bytes.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
            return "0x" + hexadecimal(bytes)
        }
        return "\"" + String(decoding: bytes, as: UTF8.self) + "\""
    }

    fileprivate static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Milliseconds since 1970 above a counter, by counting years and months.
    private static func text(time: UInt64) -> String {
        let milliseconds = time >> 16
        var days = milliseconds / 86_400_000
        var year: UInt64 = 1970
        while days >= dayCount(year) {
            days -= dayCount(year)
            year += 1
        }
        var lengths: [UInt64] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        lengths[1] += dayCount(year) - 365
        var month = 0
        while days >= lengths[month] {
            days -= lengths[month]
            month += 1
        }
        let rest = milliseconds % 86_400_000
        let clock = [rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60]
        let date = "\(padded(year, 4))-\(padded(UInt64(month) + 1, 2))-\(padded(days + 1, 2))"
        let daytime = clock.map { padded($0, 2) }.joined(separator: ":")
        let counter = time & 0xFFFF
        return "\(date)T\(daytime).\(padded(rest % 1_000, 3))Z" + (counter > 0 ? "+\(counter)" : "")
    }

    private static func dayCount(_ year: UInt64) -> UInt64 {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 366 : 365
    }

    private static func padded(_ number: UInt64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension PlainID {
    fileprivate var text: String { PlainText.hexadecimal(bytes) }
}
