/// Tells devices that a dataset has changed: the way from the hub to whatever reaches them, such as
/// APNs or Firebase.
///
/// A notice is a hint, as in Cognito's push sync: who gets it compares the count with its own, and
/// synchronises if it is behind. So one that comes twice or late does no harm, and of several for
/// one dataset the newest is enough.
public protocol PushGateway: Sendable {
    /// Passes a notice on. What returns was taken; what throws comes again, with the count as it is
    /// then. One at a time for each device.
    ///
    /// - Throws: ``PushDeviceGone`` if the device is not to be told of anything any more.
    func deliver(_ notice: PushNotice) async throws
}

/// Thrown by a gateway for a device that is no more, such as one whose app was removed: the hub
/// forgets it with its subscriptions.
public struct PushDeviceGone: Error {
    public init() {}
}

/// A device, and the dataset that has changed.
public struct PushNotice: Hashable, Sendable {
    public let identityPoolID: String
    public let identityID: String
    public let datasetName: String
    /// The dataset's sync count of the Cognito API.
    public let syncCount: UInt64
    /// As RegisterDevice gave it.
    public let deviceID: String
    /// `APNS`, `APNS_SANDBOX`, `GCM` or `ADM`.
    public let platform: String
    /// As the device gave it.
    public let token: String
}
