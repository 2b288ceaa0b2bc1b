import TidemarkSync

/// The settings in force, without anything that must not be seen: of a secret only whether there is
/// one, and of an address nothing but scheme, host and path.
struct ConsoleSettings {
    private let settings: HubSettings

    init(_ settings: HubSettings) {
        self.settings = settings
    }

    /// Groups of names and values, all of them texts as people read them.
    var answer: [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.open("[", as: "groups")
        write("Server", server, to: &answer)
        for pool in settings.pools {
            write("Pool \(pool.name.isEmpty ? pool.id : pool.name)", rows(of: pool), to: &answer)
        }
        for issuer in settings.issuers {
            write("Issuer \(issuer.provider)", rows(of: issuer), to: &answer)
        }
        for key in settings.accessKeys {
            let pools = key.pools?.joined(separator: ", ") ?? "all"
            write("Access key \(key.id)", [("pools", pools)], to: &answer)
        }
        write("Limits", rows(of: settings.limits), to: &answer)
        write("Protection", rows(of: settings.protection), to: &answer)
        answer.close("]")
        answer.close("}")
        return answer.bytes
    }

    private func write(
        _ title: String, _ rows: [(String, String)], to answer: inout JSONAnswer
    ) {
        answer.open("{")
        answer.add("title", text: title)
        answer.open("[", as: "rows")
        for (name, value) in rows {
            answer.open("{")
            answer.add("name", text: name)
            answer.add("value", text: value)
            answer.close("}")
        }
        answer.close("]")
        answer.close("}")
    }

    private var server: [(String, String)] {
        [
            ("listen.host", settings.host),
            ("listen.port", "\(settings.port)"),
            ("tls.certificateFile", settings.tls?.certificateFile ?? "none"),
            ("secretFile", settings.secrets == nil ? "made at the start" : "set"),
            ("adminTokenFile", settings.adminToken == nil ? "none" : "set"),
            ("region", settings.region),
            ("credentials.seconds", "\(settings.credentialSeconds)"),
            ("cors.origins", Self.list(settings.allowedOrigins)),
            ("metrics.isOpen", "\(settings.hasOpenMetrics)"),
            ("tracing.isOn", "\(settings.traces)"),
            ("log.requests", "\(settings.logsRequests)"),
            ("sync.messageBytesMax", "\(settings.messageBytesMax)"),
            ("sync.replicatesHub", "\(settings.replicatesHub)"),
        ]
    }

    private func rows(of pool: PoolSettings) -> [(String, String)] {
        let strategies = pool.datasetStrategies.sorted { $0.key < $1.key }
            .map { "\($0.key)=\($0.value.rawValue)" }
        return [
            ("id", pool.id),
            ("allowsGuests", "\(pool.allowsGuests)"),
            ("providers", Self.list(pool.providers)),
            ("developerProvider", pool.developerProvider ?? "none"),
            ("strategy", pool.strategy.rawValue),
            ("datasetStrategies", Self.list(strategies)),
            ("usesDeviceDates", "\(pool.usesDeviceDates)"),
            ("resolver", pool.resolver.map { Self.address($0.url) } ?? "none"),
            ("trigger", pool.trigger.map { Self.address($0.url) } ?? "none"),
            ("stream", Self.text(of: pool.stream)),
            ("stream.bytesMax", "\(pool.streamBytesMax)"),
            ("push", Self.text(of: pool.push)),
        ]
    }

    private func rows(of issuer: IssuerSettings) -> [(String, String)] {
        let keys =
            switch issuer.keys {
            case .shared: "a shared secret"
            case .file(let path): path
            case .url(let url): Self.address(url)
            }
        return [
            ("issuer", issuer.issuer),
            ("audiences", Self.list(issuer.audiences)),
            ("algorithms", Self.list(issuer.algorithms.map(\.rawValue).sorted())),
            ("keys", keys),
            ("leewaySeconds", "\(issuer.leewaySeconds)"),
        ]
    }

    /// These hold numbers and nothing else, so all of them may be told by their names.
    private func rows(of numbers: Any) -> [(String, String)] {
        Mirror(reflecting: numbers).children.compactMap { child in
            guard let name = child.label, let number = child.value as? Int else { return nil }
            return (name, "\(number)")
        }
    }

    private static func text(of stream: PoolSettings.Stream?) -> String {
        switch stream {
        case .endpoint(let endpoint)?: address(endpoint.url)
        case .file(let path)?: path
        case .standardOutput?: "standard output"
        case nil: "none"
        }
    }

    private static func text(of push: PoolSettings.Push) -> String {
        switch push {
        case .none: "none"
        case .log: "log"
        case .endpoint(let endpoint): address(endpoint.url)
        }
    }

    private static func list(_ texts: [String]) -> String {
        texts.isEmpty ? "none" : texts.joined(separator: ", ")
    }

    /// Without user, password, query and fragment, in which a secret may stand.
    static func address(_ url: String) -> String {
        let plain = url.prefix { $0 != "?" && $0 != "#" }
        guard let range = plain.firstRange(of: "://") else { return "an address" }
        let rest = plain[range.upperBound...]
        let path = rest.drop { $0 != "/" }
        let authority = rest.prefix { $0 != "/" }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        return "\(plain[..<range.upperBound])\(host)\(path)"
    }
}
