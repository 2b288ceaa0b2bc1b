import Tidemark

// Heals damaged blocks dataset by dataset, and lets go of those of which everything was restored.
//
// What is damaged is looked up once, and blocks that are found to be damaged on the way begin the
// work anew: what was restored until then stays, so that each round has less to do.

/// One healing of a store by one peer.
struct Healing: Sendable {
    private let store: Store
    private let connection: PeerConnection
    private let options: SyncOptions

    init(store: Store, transport: any SyncTransport, options: SyncOptions) {
        self.store = store
        connection = PeerConnection(transport: transport)
        self.options = options.bounded
    }

    /// - Parameter dataset: nil for all that is damaged.
    @concurrent
    func run(_ dataset: String?) async throws(SyncError) -> HealReport {
        let (outcome, isLate) = await options.withinDeadline {
            await result(for: dataset)
        }
        switch outcome {
        case .success(let report): return report
        case .failure(let error): throw isLate ? options.timedOut(error) : error
        }
    }

    private func result(for dataset: String?) async -> Result<HealReport, SyncError> {
        do throws(SyncError) {
            return .success(try await heal(dataset))
        } catch {
            return .failure(error)
        }
    }

    private func heal(_ dataset: String?) async throws(SyncError) -> HealReport {
        var report = HealReport()
        var survey = try engine { () throws(StoreError) in try store.surveyDamage() }
        while true {
            var failure: SyncError?
            do throws(SyncError) {
                try await heal(survey, of: dataset, &report)
                if report.isComplete { return report }
            } catch {
                let code = error.storeError?.code
                guard code == .corruption || code == .inputOutput else { throw error }
                failure = error
            }
            // Has anything been met on the way that nobody had come upon before?
            let next = try engine { () throws(StoreError) in try store.surveyDamage() }
            guard next.hasBlocks(beyond: survey) else {
                if let failure { throw failure }
                return report
            }
            survey = next
        }
    }

    /// One round.
    private func heal(
        _ survey: DamageSurvey, of dataset: String?, _ report: inout HealReport
    ) async throws(SyncError) {
        let wanted = survey.indices(of: dataset)
        var work = HealingWork()
        let names = Set(wanted.map { survey.pieces[$0].dataset })
        for name in names.sorted() {
            let found = try engine(name) { () throws(StoreError) in
                try store.datasetForSync(name, creating: false)
            }
            guard let found else { continue }
            let session = SyncSession(
                store: store, dataset: found, connection: connection, options: options,
                peer: ReplicaID(high: 0, low: 0))
            defer {
                report.bytesSent += session.result.bytesSent
                report.bytesReceived += session.result.bytesReceived
                report.recordsRestored += session.tally.recordsRestored
            }
            do throws(SyncError) {
                try await session.restore(
                    wanted.filter { survey.pieces[$0].dataset == name }, of: survey, &work)
            } catch {
                throw error.located(peer: session.peer.description, dataset: name)
            }
        }
        let removal = try engine { () throws(StoreError) in
            try store.removeDamage(survey, restored: work.restored, places: work.places)
        }
        report.blocksHealed += removal.blocksRemoved
        report.unhealed = []
        for index in wanted {
            guard let (reason, lacking) = work.reason(for: index, removal) else { continue }
            report.unhealed.append(
                HealReport.Unhealed(
                    damage: survey.pieces[index].damage, reason: reason, lacking: lacking))
        }
        guard dataset == nil else { return }
        let alone = survey.hopeless.map { (damage: $0, reason: HealReport.Reason.isOfStoreAlone) }
        let beside = removal.indexesLeft.map {
            (damage: $0, reason: HealReport.Reason.besideOthers)
        }
        for (damage, reason) in alone + beside {
            report.unhealed.append(
                HealReport.Unhealed(damage: damage, reason: reason, lacking: VersionVector()))
        }
    }
}

extension DamageSurvey {
    /// The pieces of all blocks that may hold anything of a dataset; of nil: all.
    fileprivate func indices(of dataset: String?) -> [Int] {
        guard let dataset else { return Array(pieces.indices) }
        return pieces.indices.filter { index in
            pieces.contains { $0.dataset == dataset && $0.isOfSameBlock(as: pieces[index]) }
        }
    }
}

/// What is known of the pieces of a survey, by their places in it.
struct HealingWork {
    /// Pieces of which all was restored that is known.
    var restored: Set<Int> = []
    /// Places in their blocks that known keys account for.
    var places: [Int: Set<UInt32>] = [:]
    /// Why others were not.
    var obstacles: [Int: (reason: HealReport.Reason, lacking: VersionVector)] = [:]

    mutating func leave(
        _ indices: [Int], _ reason: HealReport.Reason, lacking: VersionVector = VersionVector()
    ) {
        for index in indices { obstacles[index] = (reason, lacking) }
    }

    /// nil if it is healed.
    fileprivate func reason(
        for index: Int, _ removal: DamageRemoval
    ) -> (HealReport.Reason, VersionVector)? {
        if let (reason, lacking) = obstacles[index] { return (reason, lacking) }
        if let obstacle = removal.left[index] {
            switch obstacle {
            case .unknownKeys: return (.keysUnknownToPeer, VersionVector())
            case .besideOthers: return (.besideOthers, VersionVector())
            case .unreadable: return (.besideUnreadable, VersionVector())
            }
        }
        // A block that holds something of another dataset, too, goes when that is restored.
        return removal.removed.contains(index) ? nil : (.besideOthers, VersionVector())
    }
}
