import Crypto

/// What a secret of the hub is used for. The numbers are frozen: what was issued names none of
/// them, but is good only under the same.
enum SecretUse: UInt8, CaseIterable, Sendable {
    /// Tokens of temporary credentials.
    case sessionToken = 1
    /// Tokens of developers' own logins.
    case credential = 2
    /// The session tokens of ListRecords.
    case syncSession = 3
    /// Tokens of the next page.
    case page = 4
    case webhook = 5
    /// Secret keys of temporary credentials.
    case secretKey = 6
}

/// The hub's own secrets, from which all that it signs follows.
///
/// The first one signs and all of them verify: so a new one is put before the old, and the old one
/// is taken away when nothing is in use any more that was signed with it. No key is used for two
/// things: each use has a key of its own, HMAC-SHA-256 of `tidemark-hub-v1` and the number of the
/// use, with the secret as its key.
struct HubSecrets: Sendable {
    /// For each secret the keys of all uses.
    private let keys: [[SecretUse: [UInt8]]]

    static let secretBytesMin = 32
    /// More are never in use at once, and each costs a failed check its time.
    static let secretsMax = 8
    static let settingsKey = "secret"

    /// - Parameter keys: 1...8 secrets of 32 bytes or more.
    /// - Throws: for none, too many, or one that is short.
    init(keys: [[UInt8]]) throws(HubSettingsError) {
        guard (1...Self.secretsMax).contains(keys.count),
            keys.allSatisfy({ $0.count >= Self.secretBytesMin })
        else {
            throw HubSettingsError(
                Self.settingsKey,
                allowed: "1...\(Self.secretsMax) lines of base64, each of "
                    + "\(Self.secretBytesMin) bytes or more, as `openssl rand -base64 32` makes")
        }
        self.init(ofMasters: keys)
    }

    private init(ofMasters masters: [[UInt8]]) {
        let label = Array("tidemark-hub-v1".utf8)
        keys = masters.map { master in
            var ofUses: [SecretUse: [UInt8]] = [:]
            for use in SecretUse.allCases {
                ofUses[use] = Digests.hmac(label + [use.rawValue], key: master)
            }
            return ofUses
        }
    }

    /// From the text of a file or of an environment variable: one secret a line, in base64. Blank
    /// lines and such as begin with `#` are passed over.
    ///
    /// - Throws: as ``init(keys:)``, also for a line that is no base64. No error shows any of it.
    init(text: String) throws(HubSettingsError) {
        var keys: [[UInt8]] = []
        for (index, line) in text.split(whereSeparator: \.isNewline).enumerated() {
            let trimmed = line.trimmingBlanks
            guard !trimmed.isEmpty, !trimmed.hasPrefix("#") else { continue }
            guard let key = Base64.decoded(trimmed), !key.isEmpty else {
                throw HubSettingsError(
                    Self.settingsKey, allowed: "base64 on each line; line \(index + 1) is none")
            }
            keys.append(key)
        }
        try self.init(keys: keys)
    }

    /// One that is forgotten when the process ends, for hubs that are given none: what it signed is
    /// not good any more after a restart.
    static func drawn() -> HubSecrets {
        // A code of nothing under a key that was just drawn is as random as the key.
        let drawn = Array(
            HMAC<SHA256>.authenticationCode(
                for: [UInt8](), using: SymmetricKey(size: .bits256)))
        return HubSecrets(ofMasters: [drawn])
    }

    /// 32 bytes, by the secret that signs.
    func mac(_ bytes: [UInt8], for use: SecretUse) -> [UInt8] {
        mac(bytes, for: use, signer: 0)
    }

    /// By the secret with that place: what ``signer(of:_:for:)`` found.
    func mac(_ bytes: [UInt8], for use: SecretUse, signer: Int) -> [UInt8] {
        guard let key = keys[signer][use] else {
            preconditionFailure("a use of secrets has no key")
        }
        return Digests.hmac(bytes, key: key)
    }

    /// The place of the secret that has made a MAC; nil if none has. In time that tells nothing of
    /// how much is right.
    func signer(of mac: [UInt8], _ bytes: [UInt8], for use: SecretUse) -> Int? {
        var found: Int?
        // All of them are tried: which one it was shows in no time.
        for signer in keys.indices {
            let isRight = ConstantTime.areEqual(mac, self.mac(bytes, for: use, signer: signer))
            if isRight { found = signer }
        }
        return found
    }
}

extension Substring {
    /// Without blanks and tabs at both ends.
    fileprivate var trimmingBlanks: Substring {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        var rest = drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return rest
    }
}
