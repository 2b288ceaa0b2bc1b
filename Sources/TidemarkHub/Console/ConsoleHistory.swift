import Tidemark
import TidemarkSync

/// The versions of a key and how they descend from each other: what is kept of its history, and
/// what waits to be settled.
struct RecordHistory {
    /// A version, and its place in the graph.
    struct Node {
        let record: Record
        /// Whose it is that waits; nil for what is or was here.
        let peer: ReplicaID?
        /// Those that it descends from with nothing in between, by their places in the list.
        var parents: [Int] = []
    }

    /// The newest first; what waits in front.
    private(set) var nodes: [Node]
    /// Whether there are older ones.
    let isCut: Bool

    /// - Throws: what the store throws.
    init(of key: [UInt8], in dataset: Dataset) throws(StoreError) {
        let versionsMax = ConsoleLimits.versionsMax
        var kept = try dataset.history(of: key, limit: versionsMax + 1)
        isCut = kept.count > versionsMax
        kept = kept.prefix(versionsMax).filter { !$0.isDropped }
        let waiting = try dataset.pendingConflicts(of: key, limit: ConsoleLimits.waitingOfKeyMax)
        nodes =
            waiting.map { Node(record: $0.conflict.remote, peer: $0.peer) }
            + kept.map { Node(record: $0, peer: nil) }
        for index in nodes.indices { nodes[index].parents = parents(of: index) }
    }

    /// O(n²), of at most some sixty.
    private func parents(of child: Int) -> [Int] {
        let ancestors = nodes.indices.filter { isAncestor($0, of: child) }
        return ancestors.filter { one in
            !ancestors.contains { $0 != one && isAncestor(one, of: $0) }
        }
    }

    private func isAncestor(_ one: Int, of other: Int) -> Bool {
        one != other
            && nodes[other].record.version.relation(to: nodes[one].record.version) == .descendant
    }

    /// Why the present version stands over the one before it, in words.
    var reason: String {
        let kept = nodes.filter { $0.peer == nil }
        guard let current = kept.first else { return "nothing is kept of this key" }
        guard kept.count > 1 else { return "it is the only version that is kept" }
        switch current.record.version.relation(to: kept[1].record.version) {
        case .descendant: return "it was written by somebody who had seen the version before it"
        case .concurrent:
            return current.record.version.isLater(than: kept[1].record.version)
                ? "neither had seen the other, and it was written later"
                : "neither had seen the other, and it was chosen by a policy or by somebody"
        case .ancestor, .same: return "it was put back in place of a version that descends from it"
        }
    }

    func write(to answer: inout JSONAnswer) {
        answer.add("reason", text: reason)
        if isCut { answer.add("isCut", true) }
        answer.open("[", as: "versions")
        for node in nodes {
            answer.open("{")
            answer.addContent(of: node.record, valueBytesMax: ConsoleLimits.shownBytes)
            answer.add("count", node.record.syncCount.rawValue)
            if let peer = node.peer { answer.add("waitsFor", text: peer.description) }
            answer.open("[", as: "parents")
            for parent in node.parents {
                let dot = nodes[parent].record.version.dot
                answer.add(text: ConsoleNames.text(of: dot))
            }
            answer.close("]")
            answer.close("}")
        }
        answer.close("]")
    }
}
