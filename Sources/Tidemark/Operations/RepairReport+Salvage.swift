extension RepairReport {
    /// - Parameters:
    ///   - finished: the datasets as the new store has them.
    ///   - id: of the new store.
    init(
        _ salvage: Salvage, _ states: SalvagedStates, _ finished: [DatasetState], _ id: ReplicaID
    ) {
        replicaID = id
        filesRead = salvage.segments.count + salvage.logs.count + salvage.values.fileCount
        blocksRead =
            salvage.segments.reduce(0) { $0 + $1.blockCount }
            + salvage.logs.reduce(0) { $0 + $1.blockCount }
        for state in finished where state.isVisible {
            let found = states.findings[state.recordsID] ?? SalvagedStates.Findings()
            var row = Dataset(
                name: state.name, isNameMadeUp: states.madeUp.contains(state.name))
            row.entriesSaved = found.entryCount
            row.entriesLost = salvage.entriesLost(of: state.recordsID)
            row.versionsLost = Int(clamping: found.versionsLost)
            datasets.append(row)
        }
        losses = salvage.losses.map { Loss($0, states) }
    }

    /// What a repair would report, though nothing is written.
    init(planning salvage: Salvage) {
        let states = SalvagedStates(salvage)
        let nobody = ReplicaID(high: 0, low: 0)
        self.init(
            salvage, states, states.finished(own: [], replica: nobody, lostMax: 0), nobody)
    }
}

extension RepairReport.Loss {
    init(_ loss: SalvageLoss, _ states: SalvagedStates) {
        self.init(
            kind: loss.kind, file: loss.file, offset: loss.offset, byteCount: loss.byteCount,
            datasets: loss.datasets.map(states.names) ?? [], what: loss.what)
    }
}

extension Salvage {
    /// By the tables of the segments that are there.
    fileprivate func entriesLost(of dataset: DatasetID) -> Int {
        var lost = 0
        for segment in segments {
            guard let row = segment.rows?[dataset] else { continue }
            lost += max(0, Int(clamping: row.entryCount) - (segment.entryCounts[dataset] ?? 0))
        }
        return lost
    }
}
