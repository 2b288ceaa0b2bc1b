/// The rules of the service model for what names pools, identities, datasets and devices.
///
/// An identity's datasets in the store are named after it, so these rules are what keeps one
/// identity from naming what is another's: see `StoreNames`.
enum APINames {
    static let identityIDBytesMax = 55
    static let datasetNameBytesMax = 128
    static let deviceIDCharactersMax = 256
    static let recordKeyCharactersMax = 1_024
    static let recordValueCharactersMax = 1_048_575

    /// Of a pool or an identity: `[\w-]+:[0-9a-f-]+` in 1...55 bytes.
    static func isIdentifier(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        return text.utf8.count <= identityIDBytesMax && parts.count == 2
            && parts.allSatisfy { !$0.isEmpty }
            && parts[0].allSatisfy { isWord($0) || $0 == UInt8(ascii: "-") }
            && parts[1].allSatisfy { isHexadecimal($0) || $0 == UInt8(ascii: "-") }
    }

    /// Of a dataset: `[a-zA-Z0-9_.:-]+` in 1...128 bytes.
    static func isDatasetName(_ text: String) -> Bool {
        (1...datasetNameBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                isWord(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
                    || byte == UInt8(ascii: "-")
            }
    }

    /// Of a device: 1...256 characters.
    static func isDeviceID(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.count <= deviceIDCharactersMax
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default:
            false
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
        default: false
        }
    }
}
