/// An engine in one of its makes, with its type out of sight.
struct AnyEngine: Sendable {
    let name: EngineName
    let version: String
    let settings: @Sendable (EngineOptions) -> String
    let run: @Sendable (ChainRequest, @escaping (Sample) -> Void) throws -> Void

    init(_ kind: some EngineKind) {
        name = kind.name
        version = kind.version
        settings = { kind.settings($0) }
        run = { request, emit in try Chain(kind, request, emit: emit).run() }
    }

    static let all: [AnyEngine] =
        TidemarkKind.all.map { AnyEngine($0) } + Peers.all.map { AnyEngine($0) }
}
