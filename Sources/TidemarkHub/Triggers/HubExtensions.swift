/// What a process that embeds the hub adds to it in Swift, pool by pool: in place of the endpoints
/// that the settings name.
///
/// ```swift
/// var extensions = HubExtensions()
/// extensions.triggers["us-east-1:1f6d8a2e-0000-4000-8000-1234567890ab"] = { event in
///     event.records.filter(\.isChanged).map { record in
///         var record = record
///         record.newValue = record.newValue?.lowercased()
///         return record
///     }
/// }
/// ```
public struct HubExtensions: Sendable {
    /// What looks at updates before they are written, by the id of the pool. As with an endpoint,
    /// SetCognitoEvents turns it on.
    public var triggers: [String: SyncTriggerHandler] = [:]
    /// What settles conflicts where the strategy is `resolver`, by the id of the pool.
    public var resolvers: [String: ConflictHandler] = [:]
    /// Where notices go besides the devices that are connected, by the id of the pool.
    public var gateways: [String: any PushGateway] = [:]

    public init() {}
}

/// Looks at an update before it is written.
///
/// It has five seconds; after that it is cancelled, and the update refused. It may be called twice
/// for one update, if the dataset changes meanwhile.
///
/// - Returns: the records that it changes or adds, with what they are to be. Others stay as the
///   caller wants them. A nil `newValue` removes the record.
/// - Throws: ``TriggerThrottled`` to have the caller come again later; whatever else refuses the
///   update with `InvalidLambdaFunctionOutputException`.
public typealias SyncTriggerHandler =
    @Sendable (_ event: SyncTriggerEvent) async throws -> [SyncTriggerRecord]

/// An update that is about to be written, as a trigger sees it.
public struct SyncTriggerEvent: Hashable, Sendable {
    public let identityPoolID: String
    public let identityID: String
    public let datasetName: String
    /// All of the dataset, as they will be.
    public let records: [SyncTriggerRecord]
}

/// A record in such an update.
public struct SyncTriggerRecord: Hashable, Sendable {
    public let key: String
    /// What is there now; nil if nothing is.
    public let oldValue: String?
    /// What will be there; nil if nothing will.
    public var newValue: String?
    /// Whether the caller changes it.
    public let isChanged: Bool

    public init(key: String, oldValue: String? = nil, newValue: String?, isChanged: Bool = false) {
        self.key = key
        self.oldValue = oldValue
        self.newValue = newValue
        self.isChanged = isChanged
    }
}

/// Thrown by a trigger that has too much to do: the caller is told to come again later.
public struct TriggerThrottled: Error {
    public init() {}
}

/// Settles a conflict. It has five seconds. Whatever it throws refuses the update.
public typealias ConflictHandler =
    @Sendable (_ conflict: HubConflict) async throws -> HubResolution

/// A record that a device has changed without having seen what is there.
public struct HubConflict: Hashable, Sendable {
    public let identityPoolID: String
    public let identityID: String
    public let datasetName: String
    public let key: String
    /// What the device writes; nil if it removes the record.
    public let incoming: String?
    /// What is there; nil if it was removed.
    public let existing: String?
    /// What the device had changed; nil if there was nothing, or it is not kept any more.
    public let ancestor: String?
}

/// What becomes of a conflict.
public enum HubResolution: Hashable, Sendable {
    /// This is written, and both descend into it.
    case resolve(String)
    /// The update fails, as in Cognito Sync.
    case reject
    /// The record is removed.
    case remove
}
