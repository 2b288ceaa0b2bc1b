import Tidemark
import TidemarkSync

/// Two stores that exchange with each other, to be closed before the command looks at them.
struct StorePair {
    let north: Store
    let south: Store

    init(in tool: CommandLineTool, historyVersions: Int = 10) throws {
        func open(_ name: String) throws -> Store {
            try Store.open(
                at: tool.path(name),
                options: StoreOptions(
                    durability: .process, author: name, historyVersions: historyVersions,
                    compactsAutomatically: false))
        }
        north = try open("north")
        south = try open("south")
    }

    /// The first asks, the second answers.
    @discardableResult
    func exchange(_ options: SyncOptions = SyncOptions()) async -> SyncReport {
        let responder = SyncResponder(store: south)
        return await north.synchronizeEach(
            with: InMemoryTransport(responder), options: options)
    }

    func close() throws {
        try north.close()
        try south.close()
    }
}
