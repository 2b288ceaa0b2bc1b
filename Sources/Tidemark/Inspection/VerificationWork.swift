internal import Glibc

/// A log, and how much there is of it to check.
typealias VerifiedLog = (log: LogSegment, byteCount: UInt64)

/// The pieces of a verification, which any number of threads take one after the other.
///
/// Thread rule: everything under `monitor`. Pieces are checked outside of it; their results are
/// put together in the order in which the pieces were taken, so that a report does not depend on
/// who was faster. Progress is told by the thread that waits, and by no other.
final class VerificationWork: @unchecked Sendable {
    // Unchecked: see above.

    /// What is checked at once by one thread.
    struct Piece {
        fileprivate let number: Int
        /// How much of the whole is done with it; nil: as much as it checks.
        fileprivate let byteCount: UInt64?
        fileprivate let check: (inout VerificationReport) -> Void
    }

    private struct Current {
        let segment: SealedSegment
        let parts: SegmentParts
        var places: ArraySlice<SegmentParts.ContentPlace>
        /// Where the part before ends.
        var offset: UInt64
        let tallies = Tallies()
        var piecesTaken = 0
    }

    /// What was counted in the pieces of one segment. Under `monitor`.
    private final class Tallies {
        var parts: [(piece: Int, part: TallyPart)] = []
        /// Known once the last piece was taken.
        var pieceCount: Int?

        /// All that was counted, in the order of the blocks; nil before the last piece came.
        func add(_ part: TallyPart, of piece: Int) -> SegmentTally? {
            parts.append((piece, part))
            guard parts.count == pieceCount else { return nil }
            var tally = SegmentTally()
            for (_, part) in parts.sorted(by: { $0.piece < $1.piece }) { tally.add(part) }
            parts.removeAll()
            return tally
        }
    }

    private static let placesPerPiece = 32

    private let monitor = Monitor()
    private var segments: ArraySlice<SealedSegment>
    private var logs: ArraySlice<VerifiedLog>
    private let manifest: Manifest
    private var current: Current?
    private var taken = 0
    private var threadsLeft = 0
    /// Never more than there is to do, though damaged segments may name a value twice.
    private var bytesDone: UInt64 = 0
    private var results: [(number: Int, report: VerificationReport)] = []
    /// What there is to do. Values that no entry names are not part of it.
    let bytesTotal: UInt64

    init(_ segments: [SealedSegment], _ logs: [VerifiedLog], _ manifest: Manifest) {
        self.segments = segments[...]
        self.logs = logs[...]
        self.manifest = manifest
        let sealed = segments.reduce(0) { $0 + Self.byteCount(of: $1) }
        bytesTotal = logs.reduce(sealed) { $0 + $1.byteCount }
    }

    /// Of a segment and its values.
    private static func byteCount(of segment: SealedSegment) -> UInt64 {
        segment.values.table.rows.reduce(segment.fileSize) { $0 + $1.storedBytes }
    }

    /// Checks everything, with as many threads beside the calling one, or on that if it is one.
    ///
    /// - Parameters:
    ///   - report: what is added to.
    ///   - tell: called on this thread with the bytes that are done with, each time more of them,
    ///     at last with ``bytesTotal``: what damage keeps from being checked is done with, too.
    func run(
        threads: Int, into report: inout VerificationReport, tell: (UInt64) -> Void
    ) {
        if threads == 1 {
            var told: UInt64 = 0
            while let piece = monitor.withLock({ take() }) {
                check(piece)
                guard bytesDone > told, bytesDone < bytesTotal else { continue }
                told = bytesDone
                tell(told)
            }
        } else {
            threadsLeft = threads
            let workers = (0..<threads).map { _ in BackgroundThread { self.work() } }
            waitForAll(tell)
            for worker in workers { worker.join() }
        }
        tell(bytesTotal)
        for (_, part) in results.sorted(by: { $0.number < $1.number }) {
            report.filesChecked += part.filesChecked
            report.blocksChecked += part.blocksChecked
            report.bytesChecked += part.bytesChecked
            report.damages += part.damages
        }
    }

    private func work() {
        while let piece = monitor.withLock({ take() }) { check(piece) }
        monitor.withLock {
            threadsLeft -= 1
            monitor.broadcast()
        }
    }

    private func waitForAll(_ tell: (UInt64) -> Void) {
        var told: UInt64 = 0
        monitor.lock()
        defer { monitor.unlock() }
        while threadsLeft > 0 {
            monitor.wait()
            guard bytesDone > told, bytesDone < bytesTotal else { continue }
            told = bytesDone
            monitor.unlock()
            tell(told)
            monitor.lock()
        }
    }

    private func check(_ piece: Piece) {
        var part = VerificationReport()
        piece.check(&part)
        monitor.withLock {
            let left = bytesTotal - bytesDone
            bytesDone += min(piece.byteCount ?? part.bytesChecked, left)
            results.append((piece.number, part))
            monitor.broadcast()
        }
    }

    // MARK: - Pieces, under the lock

    private func piece(
        of byteCount: UInt64? = nil, _ check: @escaping (inout VerificationReport) -> Void
    ) -> Piece {
        taken += 1
        return Piece(number: taken, byteCount: byteCount, check: check)
    }

    private func take() -> Piece? {
        if let piece = takePlaces() { return piece }
        if let segment = segments.popFirst() { return open(segment) }
        guard let log = logs.popFirst() else { return nil }
        return piece(of: log.byteCount) { [manifest] part in
            Verifier.check(log, manifest, &part)
        }
    }

    /// Begins a segment. Its list of parts is made here, so that there is one such list at a time.
    private func open(_ segment: SealedSegment) -> Piece {
        do {
            let parts = try segment.parts()
            current = Current(
                segment: segment, parts: parts, places: parts.contentPlaces()[...],
                offset: UInt64(FileHeader.byteCount))
        } catch {
            return piece(of: Self.byteCount(of: segment)) { part in
                part.filesChecked += 1
                part.damages.append(error)
            }
        }
        return piece { part in
            part.filesChecked += 1
            part.bytesChecked += UInt64(FileHeader.byteCount + SegmentFooter.byteCount)
        }
    }

    private func takePlaces() -> Piece? {
        guard let current else { return nil }
        let places = current.places.prefix(Self.placesPerPiece)
        let start = current.offset
        let segment = current.segment
        let parts = current.parts
        self.current?.places = current.places.dropFirst(places.count)
        if let last = places.last { self.current?.offset = last.offset + last.byteCount }
        let isLast = current.places.count == places.count
        let number = current.piecesTaken
        self.current?.piecesTaken = number + 1
        if isLast {
            current.tallies.pieceCount = number + 1
            self.current = nil
        }
        return piece { [self] part in
            var tally = TallyPart()
            let end = Self.check(places, of: segment, parts, from: start, &tally, &part)
            Verifier.noteErrors(&part) { () throws(StoreError) in
                if isLast, let end { try parts.checkPadding(end) }
                let whole = monitor.withLock { current.tallies.add(tally, of: number) }
                guard var whole else { return }
                // Nobody comes back to it, and its size may be that of all memory.
                defer { parts.file.release(offset: 0, count: Int(segment.fileSize)) }
                if whole.isWhole { try whole.check(parts) }
            }
        }
    }

    /// Checks parts that follow on one another. Returns what is left up to the footer; nil if they
    /// do not follow, or nothing is left.
    private static func check(
        _ places: ArraySlice<SegmentParts.ContentPlace>, of segment: SealedSegment,
        _ parts: SegmentParts, from start: UInt64, _ tally: inout TallyPart,
        _ part: inout VerificationReport
    ) -> Range<UInt64>? {
        let end = segment.fileSize - UInt64(SegmentFooter.byteCount)
        var offset = start
        var hasValues = false
        defer {
            if offset > start { parts.file.release(offset: Int(start), count: Int(offset - start)) }
            if hasValues { for file in segment.values.files { file.releaseMemory() } }
        }
        for place in places {
            guard place.offset >= offset, place.offset <= end,
                place.byteCount <= end - place.offset
            else {
                part.damages.append(
                    Malformed("blocks do not follow on one another")
                        .error(in: segment.path, at: offset))
                tally.noteUnreadable()
                return nil
            }
            Verifier.noteErrors(&part) { () throws(StoreError) in
                if place.offset > offset { try parts.checkPadding(offset..<place.offset) }
            }
            parts.check(place, &tally, &part.damages)
            offset = place.offset + place.byteCount
            part.blocksChecked += 1
            let valueBytes = tally.takeValueBytes()
            hasValues = hasValues || valueBytes > 0
            part.bytesChecked += place.byteCount + valueBytes
        }
        return offset < end ? offset..<end : nil
    }
}

extension Verifier {
    /// As many as there are processors, up to four: more only wait for the disk.
    static var defaultThreads: Int { min(4, max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))) }
}
