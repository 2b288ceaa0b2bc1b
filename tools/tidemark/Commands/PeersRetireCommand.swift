import ArgumentParser
import Tidemark

struct PeersRetireCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "retire",
        abstract: "Give a peer up: nothing is kept for it any more.",
        discussion: """
            For a device that was lost or given away. Deletions that only it lacks can then be \
            forgotten. It is a decision of this store alone, and nothing is lost if the peer \
            comes again all the same: it is registered anew, and starts afresh where it must.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The peer's id, or at least its first 8 digits.") var peer: ReplicaPrefix
    @OptionGroup var selection: DatasetSelection
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openExisting(writing.options)
        var registered: [String: Set<ReplicaID>] = [:]
        try selection.forEach(of: target, in: store) { dataset in
            let matching = try dataset.peers().filter { !$0.isRetired && peer.matches($0.replica) }
            if !matching.isEmpty { registered[dataset.name] = Set(matching.map(\.replica)) }
        }
        guard !registered.isEmpty else {
            throw CommandFailure(
                .negative,
                "\(peer.digits) is registered in no such dataset; see 'tidemark peers'")
        }
        let replica = try peer.replica(among: registered.values.flatMap { $0 })
        var count = 0
        for name in registered.keys.sorted() {
            count += try target.dataset(name, in: store).retire(replica) ? 1 : 0
        }
        try store.close()
        try output.writeLine(
            "\(replica.shortDescription) retired in \(Quantities.counted(count, "dataset"))")
    }
}
