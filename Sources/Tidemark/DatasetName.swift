/// The rule for names of datasets: 1...255 bytes of letters, digits and `_.:-`.
package enum DatasetName {
    /// The rule in words, for messages.
    package static let rule =
        "1...\(Limits.datasetNameBytesMax) of the characters a-z A-Z 0-9 _ . : -"

    package static func isValid(_ name: String) -> Bool {
        !name.isEmpty && isPart(name)
    }

    /// Whether a name can have the text in it; the empty one is in all.
    package static func isPart(_ text: String) -> Bool {
        text.utf8.count <= Limits.datasetNameBytesMax
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."),
                    UInt8(ascii: ":"), UInt8(ascii: "-"):
                    true
                default:
                    false
                }
            }
    }

    /// The mark of the store's own datasets.
    private static let systemMark = UInt8(ascii: "~")

    static func isSystem(_ name: String) -> Bool {
        name.utf8.first == systemMark
    }

    /// Whether a dataset of that name may be stored: one of a user, or of the store itself.
    static func isStorable(_ name: String) -> Bool {
        isSystem(name) ? isValid(String(name.dropFirst())) : isValid(name)
    }

    /// Whether a dataset of that name may have that number; 0 is none.
    static func fits(_ name: String, number id: DatasetID) -> Bool {
        id == 0 || isSystem(name) == Limits.systemDatasetNumbers.contains(id)
    }

    /// - Throws: `invalidArgument`.
    static func check(_ name: String) throws(StoreError) {
        guard isValid(name) else {
            throw StoreError(
                .invalidArgument,
                "the dataset name \(name.prefix(280).debugDescription) is not allowed; use \(rule)")
        }
    }
}
