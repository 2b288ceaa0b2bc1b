// What is named in requests, each as a type of its own that nothing out of shape can become. Names
// of datasets in the store are made of these alone: see StoreNames.

/// Of an identity: `[\w-]+:[0-9a-f-]+`, 1...55 bytes. Never begins with `hub:`, which is the mark
/// of the hub's own datasets.
struct IdentityID: Hashable, Sendable, CustomStringConvertible {
    let text: String

    init?(_ text: String) {
        guard APINames.isIdentifier(text), !text.hasPrefix(StoreNames.ownPrefix) else {
            return nil
        }
        self.text = text
    }

    var description: String { text }
}

/// Of an identity pool: as of an identity.
struct PoolID: Hashable, Sendable, CustomStringConvertible {
    let text: String

    init?(_ text: String) {
        guard APINames.isIdentifier(text) else { return nil }
        self.text = text
    }

    var description: String { text }
}

/// Of a dataset, as clients of the Cognito API call it: `[a-zA-Z0-9_.:-]+`, 1...128 bytes, but not
/// `.` or `..`, which no path can name.
struct APIDatasetName: Hashable, Sendable, CustomStringConvertible {
    let text: String

    init?(_ text: String) {
        guard APINames.isDatasetName(text), text != ".", text != ".." else { return nil }
        self.text = text
    }

    var description: String { text }
}

/// Of a device: 1...256 characters of any kind.
struct DeviceID: Hashable, Sendable, CustomStringConvertible {
    let text: String

    init?(_ text: String) {
        guard APINames.isDeviceID(text) else { return nil }
        self.text = text
    }

    var description: String { text }
}
